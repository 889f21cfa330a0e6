import type { DeliveryRequest } from "../../dispatcher/delivery/deliver.ts";
import type { SubscriptionRow } from "./tables.ts";
import type { Place, Post, Watch } from "./watch.ts";
import type { World } from "./world.ts";

/*
 * The invariants of the sequence headers (contract 7.19). They follow from the commits and answers that the monitor
 * saw, and use no number of the stores.
 */

/** Checks the headers of a POST: their presence, the number of the event, and that what is settled was settled. */
export function checkNumbers(
  { world, watch }: { readonly world: World; readonly watch: Watch },
  post: Post,
): void {
  const { entry, subscription, place } = post;
  const say = (invariant: string, what: string) =>
    world.violate(invariant, `${subscription.id}#${entry.sequence} ${what}`, subscription.id);
  const isAsked = post.isNumbered && !entry.isTest;
  if (isAsked !== (place !== undefined))
    say("sequence headers as asked", isAsked ? "has none" : "has some");
  if (place === undefined) return;
  const { number, settled } = place;
  const expected = watch.numbers.get(entry.eventId);
  if (number !== expected) say("numbers without gaps", `is ${number} and not ${expected}`);
  for (; watch.settledNumber < settled; watch.settledNumber++)
    if (!isSettled(watch, subscription, watch.settledNumber))
      return say("settled is settled", `tells that ${watch.settledNumber + 1} is`);
  // A later round tells all events that were recorded before it.
  const before = [number - 1, ...(entry.round > 1 ? [countBefore(watch, entry.sequence)] : [])];
  if (post.ordering === "subscription" && !before.includes(settled))
    say("all before is settled", `tells ${settled} and not ${before.join(" or ")}`);
}

/** Whether the event at this index was answered with a 2xx, given up or skipped. */
function isSettled(watch: Watch, { sequencesOf, settled }: SubscriptionRow, at: number): boolean {
  const { eventId = "" } = watch.recordedEvents[at] ?? {};
  const sequences = sequencesOf.get(eventId) ?? [];
  return sequences.some(
    (one) => one <= watch.skippedThrough || settled.has(one) || watch.firstAccepted.has(one),
  );
}

function countBefore({ recordedEvents }: Watch, sequence: number): number {
  return recordedEvents.filter((event) => event.sequence < sequence).length;
}

/** Checks that a receiver knows exactly the events that it missed, once a last event has told it. */
export function checkMissed(world: World, { id }: SubscriptionRow, watch: Watch): void {
  const { recordedEvents, received, receiver } = watch;
  const missed = recordedEvents.flatMap(({ eventId }, at) =>
    received.has(eventId) ? [] : [at + 1],
  );
  const told = receiver.missed;
  if (Bun.deepEquals(told, missed)) return;
  world.violate("what was missed", `${id}: ${told.join()} and not ${missed.join()}`, id);
}

/** Returns the sequence headers of a request; undefined without them. */
export function placeIn(headers: DeliveryRequest["headers"]): Place | undefined {
  const [number, settled] = [headers["X-SVC-Sequence"], headers["X-SVC-Settled"]];
  if (number === undefined && settled === undefined) return undefined;
  return { number: Number(number), settled: Number(settled) };
}
