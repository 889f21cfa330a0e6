import { Button, Group } from "@mantine/core";
import { memo } from "react";

import { milliseconds } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import type { Follow } from "../../../ui/plain-links.ts";
import { StateBadge } from "../../../ui/state-badge.tsx";
import { AT, ATTEMPTS } from "../attempts/attempt-line.tsx";
import { OUTCOME_WORDS } from "../attempts/attempt-words.ts";
import { findingOf } from "../attempts/finding.ts";
import type { Message } from "../data/reads.ts";
import { RedeliverButton } from "./redeliver-button.tsx";
import { attemptsInWords, stateInWords } from "./message-words.ts";

export const COLUMNS = ["Time", "Event", "Review", "Attempts", "State", "More"];
const DOTS = 5;

interface MessageLineProps {
  /** Where the pages of the deliveries are. */
  readonly root: string;
  readonly follow: Follow;
  readonly subscriptionId: string;
  readonly isActive: boolean;
  readonly message: Message;
  readonly isOpen: boolean;
  readonly onToggle: (eventId: string) => void;
}

/** Shows one event. */
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
            <span className="finding">{findingOf(one).title}</span>
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
