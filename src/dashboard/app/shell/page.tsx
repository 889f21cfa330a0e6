import { Component, type ComponentType, type ReactNode, useEffect, useState } from "react";
import { useLocation } from "wouter";

import { reloadSignedIn, type Role } from "../session/identity.ts";
import type { IconName } from "../ui/icon.tsx";
import { ErrorNotice, Loading } from "../ui/states.tsx";

interface PageFile<Props> {
  readonly Page: ComponentType<Props>;
}

type PageComponent<Props = object> = ComponentType<Props> & {
  /** Preloads the chunk. An error is shown later, when the page is rendered. */
  readonly preload: () => void;
};

/**
 * Wraps a page, or a part of a page, that is a separate chunk; its file exports a component named `Page`.
 * Unlike React's `lazy`, it loads a failed chunk again: on the retry button, and when the page is opened
 * again.
 */
export function page<Props extends object = object>(
  load: () => Promise<PageFile<Props>>,
): PageComponent<Props> {
  let loaded: PageFile<Props> | undefined;
  const preload = () => {
    load().then(
      (file) => (loaded = file),
      () => undefined,
    );
  };
  return Object.assign(LoadedPage, { preload });
  function LoadedPage(props: Props) {
    const [file, setFile] = useState(loaded);
    const [error, setError] = useState<unknown>();
    const [tries, setTries] = useState(0);
    useEffect(() => {
      let isLeft = false;
      const read = async () => {
        try {
          // The first failure may be a network error. A second one may mean that a deploy replaced the
          // chunks, which takes a reload.
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

/** Reloads the page to get the deployed version, if the server is reachable. Otherwise it rethrows the error. */
async function reloadIfServed(failed: unknown): Promise<never> {
  const { ok } = await fetch(location.href, { method: "HEAD" });
  if (ok) reloadSignedIn();
  throw failed;
}

interface PageBoundaryProps {
  readonly children: ReactNode;
}

/**
 * Shows an error notice in place of a page that throws while rendering. The navigation keeps working, and
 * another page clears the error.
 */
export function PageBoundary({ children }: PageBoundaryProps) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps extends PageBoundaryProps {
  readonly location: string;
}

interface BoundaryState {
  /** The path at which the error occurred. */
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

/** An entry of the navigation with all pages below it. */
export interface Area {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly roles: readonly Role[];
  /** True if the area belongs to the user in person, so that an impersonator does not have it. */
  readonly isPersonal?: boolean;
  /** Path below `/dashboard` → page. A page's chunk is loaded when the page is first shown. */
  readonly pages: Readonly<Record<string, PageComponent>>;
  /** Pages that route the paths below their own. */
  readonly nested?: Readonly<Record<string, PageComponent>>;
}
