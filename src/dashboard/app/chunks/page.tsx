import { useEffect, useState, type ComponentType } from "react";

import { reloadSignedIn } from "../session/identity.ts";
import { ErrorNotice, Loading } from "../ui/states.tsx";

interface PageFile<Props> {
  readonly Page: ComponentType<Props>;
}

export type PageComponent<Props = object> = ComponentType<Props> & {
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
