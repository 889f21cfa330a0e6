import { Component, type ComponentType, type ReactNode, useEffect, useState } from "react";
import { useLocation } from "wouter";

import { reloadSignedIn } from "../session/identity.ts";
import type { Role } from "../session/roles.ts";
import type { IconName } from "../ui/icon.tsx";
import { ErrorNotice, Loading } from "../ui/states.tsx";

interface PageFile<Props> {
  readonly Page: ComponentType<Props>;
}

type PageComponent<Props = object> = ComponentType<Props> & {
  /**
   * Preloads the script chunk of the page. Ignores a load error, because rendering the page loads the chunk again and
   * shows the error.
   */
  readonly preload: () => void;
};

/**
 * Error of a style sheet that failed to load; undefined if none did. Vite links each sheet only once, so only a reload
 * of the document loads the sheet again.
 */
let styleFailure: Error | undefined;
window.addEventListener("vite:preloadError", ({ payload }) => {
  if (payload.message.startsWith("Unable to preload CSS")) styleFailure = payload;
});

/**
 * Loads the script chunk of a page. If a style sheet has failed to load, reloads the document instead, because the
 * page could lack its styles.
 */
function loadWithStyles<T>(load: () => Promise<T>): Promise<T> {
  return styleFailure === undefined ? load() : reloadIfServed(styleFailure);
}

/**
 * Wraps a page, or a part of a page, that is a separate script chunk; its file exports a component named
 * `Page`. Unlike React's `lazy`, the wrapper loads a failed chunk again when the user presses the retry button
 * or opens the page again.
 */
export function page<Props extends object = object>(
  load: () => Promise<PageFile<Props>>,
): PageComponent<Props> {
  let loaded: PageFile<Props> | undefined;
  const preload = () => {
    // Does not preload while offline, because a style sheet that has failed to load is not loaded again without a
    // reload of the document.
    if (!navigator.onLine) return;
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
          // The first load failure may be a network error. A second failure may mean that a deploy replaced the
          // chunks, which requires a reload.
          loaded = await (tries === 0
            ? loadWithStyles(load)
            : loadWithStyles(load).catch(reloadIfServed));
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

/** Reloads the page to get the deployed version, if the server is reachable. Throws the original error. */
async function reloadIfServed(failed: unknown): Promise<never> {
  const { ok } = await fetch(location.href, { method: "HEAD" });
  if (ok) reloadSignedIn();
  throw failed;
}

interface PageBoundaryProps {
  readonly children: ReactNode;
}

/**
 * Shows an error notice in place of a page that throws while rendering. The navigation menu keeps working, and
 * opening another page clears the error.
 */
export function PageBoundary({ children }: PageBoundaryProps) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps extends PageBoundaryProps {
  readonly location: string;
}

interface BoundaryState {
  /** Path that was rendered last. A change of the path clears the error. */
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

/** Entry of the navigation menu, with all pages that belong to it. */
export interface Area {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly roles: readonly Role[];
  /** Heading of the navigation menu below which the area stands. */
  readonly group?: string;
  /** Shows how many entries of the area wait for the user, beside its title. */
  readonly Count?: ComponentType;
  /** True if the area belongs to the user personally. */
  readonly isPersonal?: boolean;
  /** True if an impersonator may not open the area. It must be true of all areas with `isPersonal`. */
  readonly isInPerson?: boolean;
  /** Maps a path below `/dashboard` to a page. The chunk of a page is loaded when the page is first shown. */
  readonly pages: Readonly<Record<string, PageComponent>>;
  /** Maps a path to a page that handles all paths below its own with a separate router. */
  readonly nested?: Readonly<Record<string, PageComponent>>;
}
