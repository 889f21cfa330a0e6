import { milliseconds } from "../../../ui/format.ts";
import { OUTCOME_WORDS } from "../attempts/attempt-words.ts";
import { findingOf } from "../attempts/finding.ts";
import type { Message } from "../data/reads.ts";

type MessageAttempt = Message["attempts"][number];

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
});

/** Says of each attempt what it came to, for those who do not see the dots. */
export function attemptsInWords(attempts: readonly MessageAttempt[]): string {
  if (attempts.length === 0) return "No attempt yet";
  return attempts.map((one) => `${one.attempt}: ${attemptInWords(one)}`).join("; ");
}

function attemptInWords(one: MessageAttempt): string {
  const took = milliseconds(one.duration_ms);
  if (one.outcome === "interrupted") return `${OUTCOME_WORDS.interrupted}, ${took}`;
  return `${OUTCOME_WORDS[one.outcome]}, ${findingOf(one).title.toLowerCase()}, ${took}`;
}

/** Says beside the state why it is so, and what comes next. */
export function stateInWords(message: Message): string {
  const { state, waiting_behind: behind } = message;
  const last = message.attempts.at(-1);
  const waits = behind === null || behind === 0 ? "" : ` · ${behindInWords(behind)} behind`;
  if (state === "pending") return "in the queue";
  if (state === "held") return `until it is enabled${waits}`;
  if (state === "skipped") return "taken out of the queue";
  if (last === undefined) return "";
  const found = findingOf(last).title;
  if (state !== "waiting" || last.next_attempt_at === null) return `${found}${waits}`;
  return `${found} · again ${CLOCK.format(new Date(last.next_attempt_at))}${waits}`;
}

const COUNTED = 10_000;

function behindInWords(count: number): string {
  return count >= COUNTED - 1 ? "10,000 or more" : String(count);
}
