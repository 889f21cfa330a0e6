import { Button, Group } from "@mantine/core";
import { memo, type MouseEvent, type ReactNode, useCallback, useMemo, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { StateBadge } from "../../../ui/badges.tsx";
import { milliseconds } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import type { PagedList } from "../../../ui/pages.ts";
import { type Follow, isModified, usePlainLinks } from "../../../ui/plain-links.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { clockTime, shortTime, useZone, type Zone } from "../../../ui/time.tsx";
import type { FollowAttempts } from "../data/data.ts";
import { type MessageFilter, messageFilterOf } from "../data/filters.ts";
import type { Message } from "../data/list-reads.ts";
import type { Subscription } from "../data/reads.ts";
import { ATTEMPTS, diagnosisOf, OUTCOME_WORDS, phraseOf } from "./attempt-words.ts";
import { LiveList, useMessages, usePlace } from "./live-list.tsx";
import { RedeliverButton } from "./redeliver.tsx";

interface MessageListProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Query of the address, as far as it changes the content of the list. */
  readonly search: string;
  /** Id of the event that is shown beside the list. */
  readonly open: string | undefined;
  /** Shows an event beside the list; undefined if there is no room for it. */
  readonly onOpen: ((eventId: string) => void) | undefined;
  readonly above: ReactNode;
}

/** List of the events of a subscription. A row can be expanded to show the delivery attempts of the event. */
export function MessageList(props: MessageListProps) {
  const { subscription, search, open: selected, onOpen, above, ...stream } = props;
  const { id, is_active: isActive } = subscription;
  const filter = useMemo(() => messageFilterOf(new URLSearchParams(search)), [search]);
  const place = usePlace();
  const list = useMessages(id, filter, { ...stream, isAtTop: place.isAtTop });
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback(
    (eventId: string) => setOpen((before) => before.symmetricDifference(new Set([eventId]))),
    [],
  );
  const heightOf = useCallback(
    (row: Message | undefined, isNarrow: boolean) => {
      const closed = isNarrow ? CARD_PX : LINE_PX;
      if (row === undefined || !open.has(row.event_id)) return closed;
      const lines = Math.max(1, row.attempts.length);
      return closed + lines * (isNarrow ? ATTEMPT_CARD_PX : ATTEMPT_PX) + AROUND_PX;
    },
    [open],
  );
  const { base, follow } = usePlainLinks();
  const openLine = useCallback(
    (event: MouseEvent<HTMLAnchorElement>) => {
      const eventId = event.currentTarget.pathname.split("/").at(-1);
      if (onOpen === undefined || eventId === undefined || isModified(event)) return follow(event);
      event.preventDefault();
      return onOpen(eventId);
    },
    [onOpen, follow],
  );
  const [zone] = useZone();
  const line = {
    root: `${base}/webhooks/${id}/deliveries`,
    query: `?${search}`,
    follow: openLine,
    subscriptionId: id,
    isActive,
    zone,
  };
  return (
    <LiveList
      place={place}
      list={list}
      updates={list.isOutdated ? "Show what is new" : undefined}
      empty={<NoMessages filter={filter} pages={list.pages} />}
      above={above}
      label="Events"
      noun="events"
      columns={COLUMNS}
      keyOf={eventIdOf}
      heightOf={heightOf}
      renderLine={(row) => (
        <MessageLine
          {...line}
          message={row}
          isOpen={open.has(row.event_id)}
          isSelected={row.event_id === selected}
          onToggle={toggle}
        />
      )}
    />
  );
}

interface NoMessagesProps extends Pick<PagedList<Message>, "pages"> {
  readonly filter: MessageFilter;
}

function NoMessages({ filter, pages }: NoMessagesProps) {
  const [, setParams] = useSearchParams();
  if (Object.keys(filter).length === 0)
    return (
      <EmptyState icon="inbox" title="No events yet">
        Send a test event with the button above, or wait for the first review. Each event appears
        here with its attempts.
      </EmptyState>
    );
  const { review_id: reviewId } = filter;
  return (
    <EmptyState icon="inbox" title="No event fits these filters">
      Widen the time, or clear the filters. Attempts are kept for 30 days.
      {reviewId !== undefined && (
        <Button
          variant="subtle"
          onClick={() => setParams({ tab: "deliveries", external_review_id: reviewId })}
        >
          Look for {reviewId} as the id of the review site
        </Button>
      )}
      {pages.hasNextPage && (
        <Button
          variant="default"
          loading={pages.isFetchingNextPage}
          onClick={() => void pages.fetchNextPage()}
        >
          Look further back
        </Button>
      )}
    </EmptyState>
  );
}

const LINE_PX = 40;
const CARD_PX = 76;
/**
 * Heights in px of the parts of an expanded row. They must equal the heights in the style sheet, because the
 * table positions its rows by them.
 */
const ATTEMPT_PX = 26;
const ATTEMPT_CARD_PX = 46;
const AROUND_PX = 60;

const eventIdOf = ({ event_id: eventId }: Message): string => eventId;

const COLUMNS = ["Time", "Event", "Review", "Attempts", "State", "More"];
const DOTS = 5;

interface MessageLineProps {
  /** Path prefix of the pages that show single deliveries. */
  readonly root: string;
  readonly follow: Follow;
  readonly subscriptionId: string;
  readonly isActive: boolean;
  readonly message: Message;
  /** Query of the list, which the page of a delivery keeps for the way back. */
  readonly query: string;
  readonly zone: Zone;
  readonly isOpen: boolean;
  readonly isSelected: boolean;
  readonly onToggle: (eventId: string) => void;
}

/** Cells of one event in the event list. An expanded row also lists the event's delivery attempts. */
const MessageLine = memo(function MessageLine(props: MessageLineProps) {
  const { root, query, follow, message, isOpen, isSelected, zone, onToggle } = props;
  const { event_id: eventId, attempts } = message;
  const at = attempts.at(-1)?.started_at ?? message.created_at;
  const words = stateInWords(message, zone);
  return (
    <>
      <td className="cell-time tabular">
        <time dateTime={at}>{shortTime(at, zone)}</time>
      </td>
      <td className="cell-event">
        <a
          className="line-link"
          href={`${root}/${eventId}${query}`}
          onClick={follow}
          {...(isSelected && { "aria-current": true })}
        >
          {message.event}
        </a>
        <code>{eventId}</code>
      </td>
      <td className="cell-review">
        <Review message={message} />
      </td>
      <td className="cell-dots">
        <Dots message={message} />
      </td>
      <td className="cell-result">
        <span>
          <StateBadge state={message.state} />
        </span>
        <span className="finding" title={words}>
          {words}
        </span>
      </td>
      <td className="cell-more">
        <button
          type="button"
          className="line-toggle mantine-focus-auto"
          aria-expanded={isOpen}
          aria-label={`Attempts of ${eventId}`}
          onClick={() => onToggle(eventId)}
        >
          <Icon name={isOpen ? "chevronDown" : "chevronRight"} size={16} />
        </button>
      </td>
      {isOpen && (
        <td className="cell-details">
          <Details {...props} />
        </td>
      )}
    </>
  );
});

function Review({ message }: { readonly message: Message }) {
  const { review_id: id, external_review_id: own, rate, store_name: store } = message;
  if (id === null) return <span className="finding">{store ?? "–"}</span>;
  return (
    <>
      <span>
        {rate !== null && <span title={`${rate} of 5 stars`}>{rate} ★ · </span>}
        {own}
      </span>
      <span className="finding">
        #{id} · {store}
      </span>
    </>
  );
}

function Dots({ message: { attempts } }: { readonly message: Message }) {
  const shown = attempts.slice(-DOTS);
  return (
    <span className="dots">
      <span className="unseen">{attemptsInWords(attempts)}</span>
      {attempts.length > DOTS && <span aria-hidden>+{attempts.length - DOTS}</span>}
      {shown.length === 0 && <span aria-hidden>–</span>}
      {shown.map(({ id, outcome }) => (
        <span key={id} className="dot" data-outcome={outcome} />
      ))}
    </span>
  );
}

function Details(props: MessageLineProps) {
  const { root, query, follow, subscriptionId, isActive, message, zone } = props;
  const { attempts, event_id: eventId } = message;
  return (
    <>
      <ol className="message-attempts" aria-label={`Attempts of ${message.event}`}>
        {attempts.map((one) => (
          <li key={one.id}>
            <span className="tabular">
              {one.attempt} of {ATTEMPTS}
              {one.round > 1 && ` · round ${one.round}`}
            </span>
            <span className="outcome" data-outcome={one.outcome}>
              {OUTCOME_WORDS[one.outcome]}
            </span>
            <span className="finding">{diagnosisOf(one).title}</span>
            <span className="tabular finding">
              {shortTime(one.started_at, zone)} · {milliseconds(one.duration_ms)}
            </span>
          </li>
        ))}
        {attempts.length === 0 && <li>No attempt yet.</li>}
      </ol>
      <Group gap="xs" h={44}>
        <RedeliverButton size="xs" id={subscriptionId} eventId={eventId} isActive={isActive} />
        <Button
          size="xs"
          variant="subtle"
          component="a"
          href={`${root}/${eventId}${query}`}
          onClick={follow}
        >
          Request and response
        </Button>
      </Group>
    </>
  );
}

type MessageAttempt = Message["attempts"][number];

/** Describes all delivery attempts of an event as text for screen readers, which cannot read the coloured dots. */
function attemptsInWords(attempts: readonly MessageAttempt[]): string {
  if (attempts.length === 0) return "No attempt yet";
  return attempts.map((one) => `${one.attempt}: ${attemptInWords(one)}`).join("; ");
}

function attemptInWords(one: MessageAttempt): string {
  const took = milliseconds(one.duration_ms);
  if (one.outcome === "interrupted") return `${OUTCOME_WORDS.interrupted}, ${took}`;
  return `${OUTCOME_WORDS[one.outcome]}, ${phraseOf(one)}, ${took}`;
}

/** Explains the delivery state of an event: the reason for the state and the next step. */
function stateInWords(message: Message, zone: Zone): string {
  const { state, waiting_behind: behind } = message;
  const last = message.attempts.at(-1);
  const waits = behind === null || behind === 0 ? "" : ` · ${behindInWords(behind)} behind`;
  if (state === "pending") return "queued";
  if (state === "held") return `until it is enabled${waits}`;
  if (state === "skipped") return "removed from the queue";
  if (last === undefined) return "";
  const found = diagnosisOf(last).title;
  if (state !== "waiting" || last.next_attempt_at === null) return `${found}${waits}`;
  return `${found} · again ${clockTime(last.next_attempt_at, zone)}${waits}`;
}

const MAX_COUNTED = 10_000;

function behindInWords(count: number): string {
  return count >= MAX_COUNTED - 1 ? "10,000 or more" : String(count);
}
