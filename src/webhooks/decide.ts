import { addMs } from "../lib/clock.ts";
import { BATCH_INTERVAL_HOURS } from "./model.ts";
import type {
  NewSubscriptionInput,
  Subscription,
  SubscriptionSettings,
  SubscriptionUpdate,
} from "./model.ts";
import type { DeliveryState } from "./delivery-model.ts";

type RawBody = Readonly<Record<string, unknown>>;

/** Checks that `batch_interval_hours` fits `delivery_kind` (contract 6.4). */
export function intervalError({
  delivery_kind,
  batch_interval_hours: hours,
}: RawBody): string | undefined {
  const present = hours !== undefined && hours !== null;
  if (delivery_kind === "immediate") return present ? "is only allowed for batch" : undefined;
  if (delivery_kind === "batch" && !present)
    return `is required for batch: one of ${BATCH_INTERVAL_HOURS.join(", ")}`;
  return undefined;
}

/** Checks an `events` filter. The error names the invalid value (contract 6.4). */
export function eventsError(
  events: unknown,
  subscribable: readonly string[],
  testEvent: string,
): string | undefined {
  if (!Array.isArray(events)) return undefined;
  const given: unknown[] = events;
  if (given.length === 0) return "must have at least one event; omit it for all events";
  for (const [i, value] of given.entries()) {
    if (value === testEvent) return `must not have ${testEvent}: filters do not apply to tests`;
    if (typeof value !== "string" || !subscribable.includes(value))
      return `has an unknown value at index ${i}; GET /partner/webhooks/events lists all values`;
    if (given.indexOf(value) !== i) return `has ${value} twice`;
  }
  return undefined;
}

/**
 * Applies the defaults to the input of a new subscription, and the fixed settings of a batch subscription (contract
 * 6.4).
 */
export function settingsOf(input: NewSubscriptionInput): SubscriptionSettings {
  return withFixedSettings({
    label: input.label,
    webhookUrl: input.webhook_url,
    deliveryKind: input.delivery_kind,
    batchIntervalHours: input.batch_interval_hours ?? null,
    events: input.events ?? null,
    payloadMode: input.payload_mode ?? "full",
    suppressNativeNotifications: input.suppress_native_notifications ?? false,
    ordering: input.ordering ?? "subscription",
    standardWebhooks: input.standard_webhooks ?? false,
    sequenceHeaders: input.sequence_headers ?? false,
    headerNames: Object.keys(input.headers ?? {}),
  });
}

/**
 * Applies an update to the settings of a subscription. Fields that the update does not contain keep their values
 * (contract 6.9).
 */
export function updatedSettings(
  current: SubscriptionSettings,
  update: SubscriptionUpdate,
): SubscriptionSettings {
  return withFixedSettings({
    label: update.label ?? current.label,
    webhookUrl: update.webhook_url ?? current.webhookUrl,
    deliveryKind: current.deliveryKind,
    batchIntervalHours: update.batch_interval_hours ?? current.batchIntervalHours,
    // Only an absent filter keeps the current one, because null is a valid filter that selects all events.
    events: update.events === undefined ? current.events : update.events,
    payloadMode: update.payload_mode ?? current.payloadMode,
    suppressNativeNotifications:
      update.suppress_native_notifications ?? current.suppressNativeNotifications,
    ordering: update.ordering ?? current.ordering,
    standardWebhooks: update.standard_webhooks ?? current.standardWebhooks,
    sequenceHeaders: update.sequence_headers ?? current.sequenceHeaders,
    headerNames:
      update.headers === undefined ? current.headerNames : Object.keys(update.headers ?? {}),
  });
}

/** Replaces the settings that a batch subscription cannot choose by their fixed values. */
function withFixedSettings(settings: SubscriptionSettings): SubscriptionSettings {
  if (settings.deliveryKind === "immediate") return settings;
  return {
    ...settings,
    payloadMode: "full",
    suppressNativeNotifications: false,
    ordering: "subscription",
    sequenceHeaders: false,
  };
}

/**
 * Returns the names of the settings that an update has changed, as the API names them. Headers that the update contains
 * count as changed, because their present values are not compared (contract 6.22).
 */
export function changedFields(
  before: SubscriptionSettings,
  after: SubscriptionSettings,
  { headers }: SubscriptionUpdate,
): string[] {
  const differs = {
    label: before.label !== after.label,
    webhook_url: before.webhookUrl !== after.webhookUrl,
    batch_interval_hours: before.batchIntervalHours !== after.batchIntervalHours,
    events: before.events?.join() !== after.events?.join(),
    payload_mode: before.payloadMode !== after.payloadMode,
    suppress_native_notifications:
      before.suppressNativeNotifications !== after.suppressNativeNotifications,
    ordering: before.ordering !== after.ordering,
    standard_webhooks: before.standardWebhooks !== after.standardWebhooks,
    sequence_headers: before.sequenceHeaders !== after.sequenceHeaders,
    headers: headers !== undefined && before.headerNames.length + after.headerNames.length > 0,
  };
  return Object.entries(differs).flatMap(([field, changed]) => (changed ? [field] : []));
}

/**
 * Computes the first due time of a batch subscription; null for an immediate one. Due times are one interval apart,
 * counted from the creation of the subscription (contract 7.14).
 */
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
 * Computes the next due time after a change of the batch interval. The new interval counts from the last due time, or
 * from now if the result would otherwise be in the past (contract 7.14). A batch that is already due stays due.
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

/**
 * Computes the next due time after now: a whole number of intervals after the stored one. Missed due times are skipped.
 */
export function nextBatchAfter(
  { batchIntervalHours, nextBatchAt }: BatchTimes,
  { now, hourMs }: { readonly now: Date; readonly hourMs: number },
): Date | null {
  if (batchIntervalHours === null || nextBatchAt === null || nextBatchAt > now) return nextBatchAt;
  const intervalMs = batchIntervalHours * hourMs;
  const missed = Math.floor((now.getTime() - nextBatchAt.getTime()) / intervalMs);
  return addMs(nextBatchAt, (missed + 1) * intervalMs);
}

/**
 * Derives the state of a delivery that the API shows: an event that is queued for a disabled subscription is `held`
 * (contract 6.13), like one that is held for an inactive account.
 */
export function deliveryState(
  stored: DeliveryState,
  subscription: Pick<Subscription, "state">,
): DeliveryState {
  const queued = stored === "pending" || stored === "waiting";
  return queued && subscription.state === "disabled" ? "held" : stored;
}

interface RecoveryWindow {
  /** The beginning of the window; undefined if the field is invalid. */
  readonly since: Date | undefined;
  /** The end of the window; undefined if the field is absent or invalid. */
  readonly until: Date | undefined;
}

/**
 * Checks the window of a recovery. The window cannot begin before the retention time, because older attempts are
 * purged.
 */
export function windowErrors(
  { since, until }: RecoveryWindow,
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
    return `must be within the last ${days} days: older deliveries are deleted`;
  return since >= now ? "must be in the past" : undefined;
}
