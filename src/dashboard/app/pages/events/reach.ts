import type { CatalogEvent, Subscription } from "../webhooks/data/reads.ts";

/** Says whether a subscription gets the event when it happens. */
export function reachOf(
  event: Pick<CatalogEvent, "value" | "in_batch" | "subscribable">,
  subscription: Pick<Subscription, "delivery_kind" | "events">,
): string {
  if (!event.subscribable) return "It is sent on request alone.";
  const { delivery_kind: kind, events } = subscription;
  if (kind === "batch")
    return event.in_batch
      ? "When it happens, this subscription gets it with the next batch."
      : "When it happens, this subscription does not get it: batches leave it out.";
  const isWanted = events === null || events.includes(event.value);
  return isWanted
    ? "When it happens, this subscription gets it at once."
    : "When it happens, this subscription does not get it: its filter leaves it out.";
}
