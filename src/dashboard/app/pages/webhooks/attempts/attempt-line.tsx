import { memo } from "react";

import type { Follow } from "../../../ui/plain-links.ts";
import { milliseconds } from "../../../ui/format.ts";
import { OUTCOME_WORDS } from "./attempt-words.ts";
import type { AttemptRow } from "../data/attempt-rows.ts";
import { findingOf } from "./finding.ts";

export const COLUMNS = ["Time", "Event", "Result", "Attempt", "Took", "Order", "Next"];

export const AT = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
export const ATTEMPTS = 4;

interface AttemptLineProps {
  /** Where the pages of the deliveries are. */
  readonly root: string;
  readonly follow: Follow;
  readonly row: AttemptRow;
}

/** Shows one attempt. */
export const AttemptLine = memo(function AttemptLine({ root, follow, row }: AttemptLineProps) {
  const { outcome, round, next_attempt_at: next } = row;
  return (
    <>
      <td className="cell-time tabular">
        <time dateTime={row.started_at}>{AT.format(new Date(row.started_at))}</time>
      </td>
      <td className="cell-event">
        <a className="line-link" href={`${root}/${row.event_id}`} onClick={follow}>
          {row.event}
        </a>
        <code>{row.event_id}</code>
      </td>
      <td className="cell-result">
        <span className="outcome" data-outcome={outcome}>
          {OUTCOME_WORDS[outcome]}
        </span>
        {outcome !== "interrupted" && <span className="finding">{findingOf(row).title}</span>}
      </td>
      <td className="cell-attempt tabular">
        {row.attempt} of {ATTEMPTS}
        {round > 1 && ` · round ${round}`}
      </td>
      <td className="cell-took tabular">{milliseconds(row.duration_ms)}</td>
      <td className="cell-order tabular" title="Place in the order of the subscription">
        #{row.sequence}
      </td>
      <td className="cell-next tabular">
        {next === null ? "" : <time dateTime={next}>{CLOCK.format(new Date(next))}</time>}
      </td>
    </>
  );
});
