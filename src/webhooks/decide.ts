import { addMs } from "../lib/clock.ts";
import { BATCH_INTERVAL_HOURS } from "./model.ts";
import type { NewSubscriptionInput, SubscriptionSettings } from "./model.ts";

type Given = Readonly<Record<string, unknown>>;

/** Why this batch_interval_hours does not go with this delivery_kind, or nothing (decisions.md 3, fields). */
export function intervalFault({
  delivery_kind,
  batch_interval_hours: hours,
}: Given): string | undefined {
  const present = hours !== undefined && hours !== null;
  if (delivery_kind === "immediate") return present ? "is for batch only" : undefined;
  if (delivery_kind === "batch" && !present)
    return `is required for batch: one of ${BATCH_INTERVAL_HOURS.join(", ")}`;
  return undefined;
}

/** What is wrong with an `events` filter, in words that name the value, or nothing (decisions.md 3, fields). */
export function eventsFault(
  events: unknown,
  subscribable: readonly string[],
  testEvent: string,
): string | undefined {
  if (!Array.isArray(events)) return undefined;
  const given: unknown[] = events;
  if (given.length === 0) return "must name at least one event; leave it out for all events";
  for (const [i, value] of given.entries()) {
    if (value === testEvent)
      return `must not name ${testEvent}: a test is delivered whatever the filter`;
    if (typeof value !== "string" || !subscribable.includes(value))
      return `has an unknown value at index ${i}; GET /partner/webhooks/events lists all values`;
    if (given.indexOf(value) !== i) return `names ${value} twice`;
  }
  return undefined;
}

/** Defaults, and the pins of a batch subscription (decisions.md 3, fields). */
export function settingsOf(input: NewSubscriptionInput): SubscriptionSettings {
  const common = {
    label: input.label,
    webhookUrl: input.webhook_url,
    deliveryKind: input.delivery_kind,
    batchIntervalHours: input.batch_interval_hours ?? null,
    events: input.events ?? null,
  };
  if (input.delivery_kind === "batch")
    return {
      ...common,
      payloadMode: "full",
      suppressNativeNotifications: false,
      ordering: "subscription",
    };
  return {
    ...common,
    payloadMode: input.payload_mode ?? "full",
    suppressNativeNotifications: input.suppress_native_notifications ?? false,
    ordering: input.ordering ?? "subscription",
  };
}

/** Due times are a grid from creation (decisions.md 4, batch); null for immediate. */
export function firstBatchAt(
  settings: Pick<SubscriptionSettings, "batchIntervalHours">,
  createdAt: Date,
  hourMs: number,
): Date | null {
  const hours = settings.batchIntervalHours;
  return hours === null ? null : addMs(createdAt, hours * hourMs);
}
