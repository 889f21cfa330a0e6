import { addMs } from "../lib/clock.ts";
import { BATCH_INTERVAL_HOURS } from "./model.ts";
import type {
  NewSubscriptionInput,
  Subscription,
  SubscriptionSettings,
  SubscriptionUpdate,
} from "./model.ts";
import type { DeliveryState } from "./delivery-model.ts";

type Given = Readonly<Record<string, unknown>>;

/** Why this batch_interval_hours does not go with this delivery_kind, or nothing (contract 6.4). */
export function intervalError({
  delivery_kind,
  batch_interval_hours: hours,
}: Given): string | undefined {
  const present = hours !== undefined && hours !== null;
  if (delivery_kind === "immediate") return present ? "is for batch only" : undefined;
  if (delivery_kind === "batch" && !present)
    return `is required for batch: one of ${BATCH_INTERVAL_HOURS.join(", ")}`;
  return undefined;
}

/** What is wrong with an `events` filter, in words that name the value, or nothing (contract 6.4). */
export function eventsError(
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

/** Defaults, and the pins of a batch subscription (contract 6.4). */
export function settingsOf(input: NewSubscriptionInput): SubscriptionSettings {
  return pinned({
    label: input.label,
    webhookUrl: input.webhook_url,
    deliveryKind: input.delivery_kind,
    batchIntervalHours: input.batch_interval_hours ?? null,
    events: input.events ?? null,
    payloadMode: input.payload_mode ?? "full",
    suppressNativeNotifications: input.suppress_native_notifications ?? false,
    ordering: input.ordering ?? "subscription",
  });
}

/** The settings after an update: what it does not name stays (contract 6.9). */
export function updatedSettings(
  current: SubscriptionSettings,
  update: SubscriptionUpdate,
): SubscriptionSettings {
  return pinned({
    label: update.label ?? current.label,
    webhookUrl: update.webhook_url ?? current.webhookUrl,
    deliveryKind: current.deliveryKind,
    batchIntervalHours: update.batch_interval_hours ?? current.batchIntervalHours,
    // Null is a value here: all events.
    events: update.events === undefined ? current.events : update.events,
    payloadMode: update.payload_mode ?? current.payloadMode,
    suppressNativeNotifications:
      update.suppress_native_notifications ?? current.suppressNativeNotifications,
    ordering: update.ordering ?? current.ordering,
  });
}

function pinned(settings: SubscriptionSettings): SubscriptionSettings {
  if (settings.deliveryKind === "immediate") return settings;
  return {
    ...settings,
    payloadMode: "full",
    suppressNativeNotifications: false,
    ordering: "subscription",
  };
}

/** The names of the fields in which two settings differ, as the API names them. */
export function changedFields(before: SubscriptionSettings, after: SubscriptionSettings): string[] {
  const differs = {
    label: before.label !== after.label,
    webhook_url: before.webhookUrl !== after.webhookUrl,
    batch_interval_hours: before.batchIntervalHours !== after.batchIntervalHours,
    events: before.events?.join() !== after.events?.join(),
    payload_mode: before.payloadMode !== after.payloadMode,
    suppress_native_notifications:
      before.suppressNativeNotifications !== after.suppressNativeNotifications,
    ordering: before.ordering !== after.ordering,
  };
  return Object.entries(differs).flatMap(([field, changed]) => (changed ? [field] : []));
}

/** Due times are a grid from creation (contract 7.14); null for immediate. */
export function firstBatchAt(
  settings: Pick<SubscriptionSettings, "batchIntervalHours">,
  createdAt: Date,
  hourMs: number,
): Date | null {
  const hours = settings.batchIntervalHours;
  return hours === null ? null : addMs(createdAt, hours * hourMs);
}

type BatchTimes = Pick<Subscription, "batchIntervalHours" | "nextBatchAt">;

/**
 * When the next batch is due after a change of the interval: it counts from the last due time, or from now if that has
 * passed (contract 7.14). A batch that is due already stays due: its events have waited long enough.
 */
export function rescheduledBatchAt(
  { batchIntervalHours, nextBatchAt }: BatchTimes,
  hours: number | null,
  { now, hourMs }: { readonly now: Date; readonly hourMs: number },
): Date | null {
  if (batchIntervalHours === null || nextBatchAt === null || hours === null) return nextBatchAt;
  if (hours === batchIntervalHours || nextBatchAt <= now) return nextBatchAt;
  const due = addMs(nextBatchAt, (hours - batchIntervalHours) * hourMs);
  return due > now ? due : addMs(now, hours * hourMs);
}

/** The next due time after now on the grid of a batch subscription, whose missed times are not made up for. */
export function nextBatchAfter(
  { batchIntervalHours, nextBatchAt }: BatchTimes,
  { now, hourMs }: { readonly now: Date; readonly hourMs: number },
): Date | null {
  if (batchIntervalHours === null || nextBatchAt === null || nextBatchAt > now) return nextBatchAt;
  const intervalMs = batchIntervalHours * hourMs;
  const missed = Math.floor((now.getTime() - nextBatchAt.getTime()) / intervalMs);
  return addMs(nextBatchAt, (missed + 1) * intervalMs);
}

/** Contract 6.13: what is queued for a disabled subscription is held. */
export function deliveryState(
  stored: Exclude<DeliveryState, "held">,
  subscription: Pick<Subscription, "state">,
): DeliveryState {
  const queued = stored === "pending" || stored === "waiting";
  return queued && subscription.state === "disabled" ? "held" : stored;
}

interface Window {
  /** Undefined where it could not be read. */
  readonly since: Date | undefined;
  /** Undefined where it was not given, or could not be read. */
  readonly until: Date | undefined;
}

/** Why a window cannot be recovered, field by field. Beyond the retention time nobody knows what was delivered. */
export function windowErrors(
  { since, until }: Window,
  { now, retentionMs }: { readonly now: Date; readonly retentionMs: number },
): { since: string | undefined; until: string | undefined } {
  const isBackwards = since !== undefined && until !== undefined && until <= since;
  return {
    since: since && sinceError(since, { now, retentionMs }),
    until: isBackwards ? "must be later than since" : undefined,
  };
}

function sinceError(
  since: Date,
  { now, retentionMs }: { readonly now: Date; readonly retentionMs: number },
): string | undefined {
  const days = retentionMs / 86_400_000;
  if (since < addMs(now, -retentionMs))
    return `must lie within the last ${days} days: older deliveries are forgotten`;
  return since >= now ? "must lie in the past" : undefined;
}
