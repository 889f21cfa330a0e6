import { Button, Group } from "@mantine/core";
import { memo } from "react";

import { StateBadge } from "../../../ui/badges.tsx";
import { milliseconds } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import type { Follow } from "../../../ui/plain-links.ts";
import { AT, ATTEMPTS } from "./attempt-words.ts";
import { diagnosisOf, OUTCOME_WORDS } from "./attempt-words.ts";
import type { Message } from "../data/list-reads.ts";
import { RedeliverButton } from "./redeliver.tsx";

export const COLUMNS = ["Time", "Event", "Review", "Attempts", "State", "More"];
const DOTS = 5;

interface MessageLineProps {
  /** Path prefix of the pages that show single deliveries. */
  readonly root: string;
  readonly follow: Follow;
  readonly subscriptionId: string;
  readonly isActive: boolean;
  readonly message: Message;
  readonly isOpen: boolean;
  readonly onToggle: (eventId: string) => void;
}

/** Cells of one event in the event list. An expanded row also lists the event's delivery attempts. */
export const MessageLine = memo(function MessageLine(props: MessageLineProps) {
  const { root, follow, message, isOpen, onToggle } = props;
  const { event_id: eventId, attempts } = message;
  const at = attempts.at(-1)?.started_at ?? message.created_at;
  const words = stateInWords(message);
  return (
    <>
      <td className="cell-time tabular">
        <time dateTime={at}>{AT.format(new Date(at))}</time>
      </td>
      <td className="cell-event">
        <a className="line-link" href={`${root}/${eventId}`} onClick={follow}>
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

function Details({ root, follow, subscriptionId, isActive, message }: MessageLineProps) {
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
              {AT.format(new Date(one.started_at))} · {milliseconds(one.duration_ms)}
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
          href={`${root}/${eventId}`}
          onClick={follow}
        >
          All that was sent
        </Button>
      </Group>
    </>
  );
}

type MessageAttempt = Message["attempts"][number];

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
});

/** Describes all delivery attempts of an event as text for screen readers, which cannot read the coloured dots. */
function attemptsInWords(attempts: readonly MessageAttempt[]): string {
  if (attempts.length === 0) return "No attempt yet";
  return attempts.map((one) => `${one.attempt}: ${attemptInWords(one)}`).join("; ");
}

function attemptInWords(one: MessageAttempt): string {
  const took = milliseconds(one.duration_ms);
  if (one.outcome === "interrupted") return `${OUTCOME_WORDS.interrupted}, ${took}`;
  return `${OUTCOME_WORDS[one.outcome]}, ${diagnosisOf(one).title.toLowerCase()}, ${took}`;
}

/** Explains the delivery state of an event: the reason for the state and the next step. */
function stateInWords(message: Message): string {
  const { state, waiting_behind: behind } = message;
  const last = message.attempts.at(-1);
  const waits = behind === null || behind === 0 ? "" : ` · ${behindInWords(behind)} behind`;
  if (state === "pending") return "in the queue";
  if (state === "held") return `until it is enabled${waits}`;
  if (state === "skipped") return "taken out of the queue";
  if (last === undefined) return "";
  const found = diagnosisOf(last).title;
  if (state !== "waiting" || last.next_attempt_at === null) return `${found}${waits}`;
  return `${found} · again ${CLOCK.format(new Date(last.next_attempt_at))}${waits}`;
}

const MAX_COUNTED = 10_000;

function behindInWords(count: number): string {
  return count >= MAX_COUNTED - 1 ? "10,000 or more" : String(count);
}
