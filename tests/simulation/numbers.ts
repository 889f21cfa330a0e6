import { indexFrom } from "./log.ts";
import type { OutboxRow, SubscriptionRow } from "./tables.ts";

/*
 * The numbers of events at a subscription, and what is settled before a load (contract 7.19), by the rules of
 * src/outbox/queries.ts and dispatcher/store/load-queries.ts. Each rule is a separate function, so that an injected
 * fault can replace it.
 */

/** Counts the sequences since the last event of the log, which belong to no event, before events are appended. */
export function countUnlogged(target: SubscriptionRow): void {
  target.unlogged += target.lastSequence - target.lastLogged;
}

const numberIn = (event: OutboxRow | undefined): number =>
  event === undefined ? 0 : event.sequence - (event.unlogged ?? 0);

/** Returns the number of the last event of the log before a sequence; 0 if there is none. */
function numberBefore({ log }: SubscriptionRow, sequence: number): number {
  return numberIn(log[indexFrom(log, sequence) - 1]);
}

/** Returns the number of an entry; null if it is none of an event of the log. */
export function numberOf({ log, sequencesOf }: SubscriptionRow, entry: OutboxRow): number | null {
  const [first = 0] = sequencesOf.get(entry.eventId) ?? [];
  const event = log[indexFrom(log, first)];
  return event?.sequence === first ? numberIn(event) : null;
}

/** Returns the number of the last event before an entry in the queue. For a first round it is the one before. */
export function settledBefore(target: SubscriptionRow, { sequence }: OutboxRow): number {
  return numberBefore(target, sequence);
}

/** Returns the number up to which every event is settled; with one lane, the last one. */
export function settledLimit(target: SubscriptionRow): number {
  const last = target.lastLogged - target.unlogged;
  if (target.ordering === "subscription") return last;
  const event = firstUnsettled(target);
  return event === undefined ? last : numberBefore(target, event.sequence);
}

/** Returns the first event of the log that is queued in its first round, with or without a row. */
export function firstUnsettled(target: SubscriptionRow): OutboxRow | undefined {
  const { outbox, log, skippedThrough, settledThrough } = target;
  const next = log[indexFrom(log, settledThrough + 1)];
  for (let at = indexFrom(outbox, skippedThrough + 1); ; at++) {
    const row = outbox[at];
    if (row === undefined || (next !== undefined && row.sequence > next.sequence)) return next;
    if (!row.isTest && row.round === 1) return row;
  }
}
