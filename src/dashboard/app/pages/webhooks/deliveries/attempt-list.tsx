import { memo, useMemo } from "react";

import type { LiveState } from "../../../session/live.ts";
import { counted, milliseconds } from "../../../ui/format.ts";
import { type Follow, usePlainLinks } from "../../../ui/plain-links.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { AT, ATTEMPTS, diagnosisOf, OUTCOME_WORDS } from "./attempt-words.ts";
import { type AttemptRow, filterOf } from "../data/filters.ts";
import type { FollowAttempts } from "../data/data.ts";
import { LiveList, useAttempts, usePlace } from "./live-list.tsx";

interface AttemptListProps {
  readonly id: string;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  readonly search: string;
}

/** List of the delivery attempts of a subscription, one row per attempt. */
export function AttemptList({ id, search, ...stream }: AttemptListProps) {
  const filter = useMemo(() => filterOf(new URLSearchParams(search)), [search]);
  const place = usePlace();
  const list = useAttempts(id, filter, { ...stream, isAtTop: place.isAtTop });
  const { base, follow } = usePlainLinks();
  const root = `${base}/webhooks/${id}/deliveries`;
  return (
    <LiveList
      place={place}
      list={list}
      updates={updatesLabel(list.waiting, list.isOutdated)}
      empty={<NoAttempts isFiltered={Object.keys(filter).length > 0} />}
      label="Attempts"
      kind="attempt"
      noun="attempts"
      columns={COLUMNS}
      keyOf={idOf}
      heightOf={heightOf}
      renderLine={(row) => <AttemptLine root={root} follow={follow} row={row} />}
    />
  );
}

function updatesLabel(waiting: number, isOutdated: boolean): string | undefined {
  if (waiting > 0) return `Show ${counted(waiting, "new attempt")}`;
  return isOutdated ? "Look for newer attempts" : undefined;
}

function NoAttempts({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon="inbox" title="No attempt fits these filters">
        Widen the time, or clear the filters. Attempts are kept for 30 days.
      </EmptyState>
    );
  return (
    <EmptyState icon="inbox" title="No attempts yet">
      Send a test event with the button above, or wait for the first review. Each attempt appears
      here by itself, with what was sent and what was answered.
    </EmptyState>
  );
}

const LINE_PX = 44;
const CARD_PX = 104;

const idOf = ({ id }: AttemptRow): string => id;
const heightOf = (_row: unknown, isNarrow: boolean): number => (isNarrow ? CARD_PX : LINE_PX);

const COLUMNS = ["Time", "Event", "Result", "Attempt", "Took", "Order", "Next"];

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

interface AttemptLineProps {
  /** Path prefix of the pages that show single deliveries. */
  readonly root: string;
  readonly follow: Follow;
  readonly row: AttemptRow;
}

/** Cells of one attempt in the attempt list. Memoized, because the list renders again with each new attempt. */
const AttemptLine = memo(function AttemptLine({ root, follow, row }: AttemptLineProps) {
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
        {outcome !== "interrupted" && <span className="finding">{diagnosisOf(row).title}</span>}
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
