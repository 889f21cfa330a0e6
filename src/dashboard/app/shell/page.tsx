import { Component, type ComponentType, type ReactNode, useEffect, useState } from "react";
import { useLocation } from "wouter";

import { reloadSignedIn, type Role } from "../session/identity.ts";
import type { IconName } from "../ui/icon.tsx";
import { ErrorNotice, Loading } from "../ui/states.tsx";

interface PageFile<Props> {
  readonly Page: ComponentType<Props>;
}

type PageComponent<Props = object> = ComponentType<Props> & {
  /** Asks for the chunk before it is shown. What goes wrong is said when it is. */
  readonly ahead: () => void;
};

/**
 * A page, or a part of one, is a chunk of its own; its file has a component named `Page`. Unlike with `lazy`, a chunk that
 * did not come is asked for again: by the button, and by whoever comes to the page once more.
 */
export function page<Props extends object = object>(
  load: () => Promise<PageFile<Props>>,
): PageComponent<Props> {
  let loaded: PageFile<Props> | undefined;
  const ahead = () => {
    load().then(
      (file) => (loaded = file),
      () => undefined,
    );
  };
  return Object.assign(LoadedPage, { ahead });
  function LoadedPage(props: Props) {
    const [file, setFile] = useState(loaded);
    const [error, setError] = useState<unknown>();
    const [tries, setTries] = useState(0);
    useEffect(() => {
      let isLeft = false;
      const read = async () => {
        try {
          // The first failure may be the network's. After a second one there may be another version, of other chunks.
          loaded = await (tries === 0 ? load() : load().catch(reloadIfServed));
          if (!isLeft) setFile(loaded);
        } catch (failed) {
          if (!isLeft) setError(failed);
        }
      };
      void read();
      return () => {
        isLeft = true;
      };
    }, [tries]);
    if (file !== undefined) return <file.Page {...props} />;
    if (error === undefined) return <Loading />;
    const retry = () => {
      setError(undefined);
      setTries(tries + 1);
    };
    return <ErrorNotice error={error} retry={retry} />;
  }
}

/** Takes the present version from the server, where there is one to be had. */
async function reloadIfServed(failed: unknown): Promise<never> {
  const { ok } = await fetch(location.href, { method: "HEAD" });
  if (ok) reloadSignedIn();
  throw failed;
}

interface PageBoundaryProps {
  readonly children: ReactNode;
}

/** Shows the error of a page that breaks; the navigation stays usable, and leads to pages that do not. */
export function PageBoundary({ children }: PageBoundaryProps) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps extends PageBoundaryProps {
  readonly location: string;
}

interface BoundaryState {
  /** Where the error belongs to. */
  readonly location: string;
  readonly broken?: { readonly error: unknown } | undefined;
}

class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { location: this.props.location };

  static getDerivedStateFromError(error: unknown) {
    return { broken: { error } };
  }

  static getDerivedStateFromProps({ location }: BoundaryProps, before: BoundaryState) {
    return location === before.location ? null : { location, broken: undefined };
  }

  override render() {
    const { broken } = this.state;
    if (broken === undefined) return this.props.children;
    return <ErrorNotice error={broken.error} retry={reloadSignedIn} />;
  }
}

/** One entry of the navigation with all paths below it. */
export interface Area {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly roles: readonly Role[];
  /** Whether it is of the user in person, and nobody who acts as the user has it. */
  readonly isPersonal?: boolean;
  /** Path below `/dashboard` → page; loaded when it is first shown. */
  readonly pages: Readonly<Record<string, PageComponent>>;
  /** The same of pages that have paths of their own below theirs. */
  readonly nested?: Readonly<Record<string, PageComponent>>;
}
