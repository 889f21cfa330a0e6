import { counted, number } from "../../../ui/format.ts";
import type { DeliveryKind, Health, Incident, Subscription } from "./reads.ts";

interface Kind {
  readonly kind: DeliveryKind;
  readonly title: string;
  readonly short: string;
  /** Use case of the kind of subscription, shown while the partner has no subscription of this kind. */
  readonly purpose: string;
}

/** Kinds of webhook subscriptions. A partner can have one subscription of each kind. */
export const KINDS: readonly Kind[] = [
  {
    kind: "immediate",
    title: "Immediate",
    short: "Each event as soon as it happens, in order.",
    purpose:
      "We POST each event to the endpoint within seconds, strictly in order, and retry failed attempts. Suited to live dashboards, alerts and anything that reacts to a review.",
  },
  {
    kind: "batch",
    title: "Batch",
    short: "The review events of the last hours, at a fixed interval.",
    purpose:
      "Every few hours we POST all review events since the last batch, one event per request. Suited to nightly imports and reports.",
  },
];

export function kindTitle(kind: DeliveryKind): string {
  return kind === "batch" ? "Batch" : "Immediate";
}

/** Number up to which the server counts the events of a subscription (contract 6.17). */
export const MAX_COUNTED = 10_000;

/** Says how many events wait, as the beginning of a sentence. */
export function eventsWait(count: number): string {
  if (count === 0) return "No events wait";
  const more = count >= MAX_COUNTED ? " or more" : "";
  return `${number(count)}${more} ${count === 1 ? "event waits" : "events wait"}`;
}

type Facts = Pick<
  Subscription,
  "delivery_kind" | "batch_interval_hours" | "events" | "payload_mode" | "ordering"
>;

/** Summarizes in a phrase which events a subscription receives. */
export function eventsInWords(one: Facts): string {
  if (one.delivery_kind === "batch")
    return one.batch_interval_hours === 1
      ? "every hour"
      : `every ${counted(one.batch_interval_hours ?? 0, "hour")}`;
  const events = one.events === null ? "all events" : counted(one.events.length, "event");
  const ordering = one.ordering === "review" ? "strict order per review" : "strict order";
  return `${events}, ${one.payload_mode} body, ${ordering}`;
}

/** Describes in a phrase how a subscription was disabled, to follow "disabled" and a time. */
export function disabledBecause({
  disabled_reason: reason,
  consecutive_failure_count: failures,
}: Pick<Subscription, "disabled_reason" | "consecutive_failure_count">): string {
  if (reason === "consecutive_failures")
    return `because ${failures} events in a row could not be delivered`;
  if (reason === "operator") return "by the platform";
  if (reason === "suspended") return "because the company is suspended";
  if (reason === "manual") return "by hand";
  return reason === null ? "" : `(${reason.replaceAll("_", " ")})`;
}

/** Number of failed attempts of one event from which it counts as trouble (contract 6.17). */
const TROUBLE_FROM = 2;

/**
 * Returns the state of a disabled subscription, or the condition of an active one. A healthy subscription is `retrying`
 * while an event waits for its retry, and `active` without any success, because nothing has shown yet that it works. In
 * strict order a degraded one is `retrying`, too: nothing is delivered before the retry.
 */
export function conditionOf(
  subscription: Pick<Subscription, "is_active" | "ordering">,
  health: Pick<Health, "condition" | "last_success_at" | "blocked_attempts"> | undefined,
) {
  if (!subscription.is_active) return "disabled";
  if (health === undefined) return "active";
  const { condition, last_success_at: success } = health;
  const mayRetry =
    condition === "healthy" ||
    (condition === "degraded" && subscription.ordering === "subscription");
  if (mayRetry && isRetryShown(subscription, health)) return "retrying";
  return condition === "healthy" && success === null ? "active" : (condition ?? "active");
}

/** Tells of a subscription that has recovered. */
export const RECOVERED = "Deliveries succeed again.";

/** Time in ms without a failed attempt after which a degraded subscription has recovered. */
const CALM_MS = 300_000;

interface Aftermath {
  readonly health: Pick<
    Health,
    "last_success_at" | "blocked_attempts" | "quarantined" | "outage_since"
  >;
  readonly causes: readonly Pick<Incident["causes"][number], "last_at">[];
  readonly now: number;
}

/**
 * Returns whether a degraded subscription works again: nothing waits for a retry, and since the last failed attempt
 * some minutes have passed and an event was delivered. Only the rate of the last hour is still low.
 */
export function hasRecovered({ health, causes, now }: Aftermath): boolean {
  const { last_success_at: success, quarantined, outage_since: outage } = health;
  if (health.blocked_attempts > 0 || quarantined.length > 0 || outage !== null) return false;
  const failed = lastFailure(causes);
  return (
    failed !== undefined &&
    success !== null &&
    now - failed >= CALM_MS &&
    Date.parse(success) > failed
  );
}

/** Returns the time in ms of the last failed attempt; undefined without one. */
export function lastFailure(causes: Aftermath["causes"]): number | undefined {
  return causes.length === 0
    ? undefined
    : Math.max(...causes.map(({ last_at: at }) => Date.parse(at)));
}

/** Number of permanent failures in a row that disables a subscription (contract 7.9). */
export const DISABLED_AFTER = 20;

const HOUR_MS = 3_600_000;
/** Length in ms of the intervals in which the API counts; its last hour begins with one of them. */
const COUNT_MS = 300_000;

/** The period and the extent of a problem. */
export interface TroublePeriod {
  /** Start of the incident; null if the failures of the last hour are counted. */
  readonly since: string | null;
  /** Success rate of the last hour; null if nearly all attempts fail or the queue is blocked. */
  readonly rate: number | null;
}

/**
 * Returns the problem of a subscription whose causes a page shows; undefined if it is healthy, or if it is degraded for
 * a reason on our side. A degraded subscription has no incident, or one of a single event, so its failures are those of
 * the last hour (contract 6.17).
 */
export function problemOf(
  condition: string,
  { since, causes }: Pick<Incident, "since" | "causes">,
  {
    health,
    now,
  }: { readonly health: Pick<Health, "condition" | "success_rate_1h">; readonly now: number },
): TroublePeriod | undefined {
  if (condition === "failing" || condition === "disabled")
    return since === null ? undefined : { since, rate: null };
  if (health.condition !== "degraded" || causes.length === 0) return undefined;
  const hour = Math.floor((now - HOUR_MS) / COUNT_MS) * COUNT_MS;
  const isLong = since !== null && Date.parse(since) < hour;
  // A rate says little while a blocked queue delivers nothing.
  const rate = condition === "retrying" ? null : health.success_rate_1h;
  return { since: isLong ? since : null, rate };
}

/**
 * Returns whether a page shows the event that waits for a retry. In strict order, a waiting event is always
 * shown, because it blocks all later events. In order by review, it is shown from the second failed attempt.
 */
export function isRetryShown(
  { ordering }: Pick<Subscription, "ordering">,
  health: Pick<Health, "blocked_attempts">,
): boolean {
  return health.blocked_attempts >= (ordering === "review" ? TROUBLE_FROM : 1);
}

/** Describes how a disabled subscription can be enabled. `mayEnable` is whether the viewer has a button for it. */
export function wayOut(
  { disabled_reason: reason }: Pick<Subscription, "disabled_reason">,
  mayEnable: boolean,
): string {
  if (reason === "suspended") return "It is enabled automatically when the company is activated.";
  if (reason === "operator" && !mayEnable) return "Only the platform can enable it.";
  if (!mayEnable) return "Somebody who manages webhooks can enable it.";
  return reason === "operator" ? "" : "Fix the endpoint first, then enable it.";
}
