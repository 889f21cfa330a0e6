import { Fragment } from "react";

import { placesIn } from "./text-query.ts";

interface FoundProps {
  readonly text: string;
  /** What is searched for. */
  readonly q: string | undefined;
}

/** Shows a text in which what was searched for is marked. */
export function Found({ text, q }: FoundProps) {
  return placesIn(text, q).map(({ from, before, found }) => (
    <Fragment key={from}>
      {before}
      {found !== "" && <mark>{found}</mark>}
    </Fragment>
  ));
}
