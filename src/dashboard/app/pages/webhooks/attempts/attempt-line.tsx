import { memo } from "react";
import { Link } from "wouter";

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

/** Shows one attempt in plain elements, because dozens of these are made anew while somebody scrolls. */
export const AttemptLine = memo(function AttemptLine({
  subscriptionId,
  row,
}: {
  readonly subscriptionId: string;
  readonly row: AttemptRow;
}) {
  const { outcome, round, next_attempt_at: next } = row;
  return (
    <>
      <td className="cell-time tabular">
        <time dateTime={row.started_at}>{AT.format(new Date(row.started_at))}</time>
      </td>
      <td className="cell-event">
        <Link className="line-link" href={`/webhooks/${subscriptionId}/deliveries/${row.event_id}`}>
          {row.event}
        </Link>
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
