import { counted } from "../../../ui/format.ts";
import type { DeliveryKind, Health, Subscription } from "./reads.ts";

interface Kind {
  readonly kind: DeliveryKind;
  readonly title: string;
  readonly short: string;
  /** It says in the empty slot what the kind is good for. */
  readonly purpose: string;
}

/** Every partner has one slot of each. */
export const KINDS: readonly Kind[] = [
  {
    kind: "immediate",
    title: "Immediate",
    short: "Each event as soon as it happens, in order.",
    purpose:
      "We POST every event to your endpoint within moments, strictly in order, and try again when it fails. Right for live dashboards, alerts and anything that reacts to a review.",
  },
  {
    kind: "batch",
    title: "Batch",
    short: "All review events of the last hours, at fixed times.",
    purpose:
      "Every few hours we POST what happened to reviews since the last time, one event per request. Right for nightly imports, reports and quiet systems.",
  },
];

export function kindTitle(kind: DeliveryKind): string {
  return kind === "batch" ? "Batch" : "Immediate";
}

type Facts = Pick<
  Subscription,
  "delivery_kind" | "batch_interval_hours" | "events" | "payload_mode" | "ordering"
>;

/** Says in half a line what a subscription sends. */
export function eventsInWords(one: Facts): string {
  if (one.delivery_kind === "batch")
    return `every ${counted(one.batch_interval_hours ?? 0, "hour")}`;
  const events = one.events === null ? "all events" : counted(one.events.length, "event");
  const ordering = one.ordering === "review" ? "strict order per review" : "strict order";
  return `${events}, ${one.payload_mode} body, ${ordering}`;
}

/** Says in words why a subscription is disabled. */
export function disabledBecause({
  disabled_reason: reason,
  consecutive_failure_count: failures,
}: Pick<Subscription, "disabled_reason" | "consecutive_failure_count">): string {
  if (reason === "consecutive_failures")
    return `${failures} events in a row could not be delivered`;
  if (reason === "manual") return "it was disabled by hand";
  return reason?.replaceAll("_", " ") ?? "it was switched off";
}

type Blocking = Pick<Health, "blocked_attempts" | "blocked_since" | "last_success_at">;

/** An event with this many failed attempts is trouble. A single failure mostly ends with the first retry. */
const TROUBLE_FROM = 2;

/**
 * The state for a badge. An active subscription is failing after a permanent failure, until the next 2xx, and when an event
 * has failed twice and nothing was delivered since its first attempt.
 */
export function stateInWord(
  one: Pick<Subscription, "is_active" | "consecutive_failure_count">,
  health: Blocking | undefined,
): "active" | "failing" | "disabled" {
  if (!one.is_active) return "disabled";
  const isStuck =
    health !== undefined && health.blocked_attempts >= TROUBLE_FROM && !hasDeliveredSince(health);
  return one.consecutive_failure_count > 0 || isStuck ? "failing" : "active";
}

function hasDeliveredSince({ blocked_since: since, last_success_at: last }: Blocking): boolean {
  return since !== null && last !== null && Date.parse(last) >= Date.parse(since);
}

/**
 * Tells whether a page mentions the event that waits for a retry. In strict order it always does, because all later events
 * wait behind it; in order by review, after the second failed attempt.
 */
export function isRetryShown(
  { ordering }: Pick<Subscription, "ordering">,
  health: Pick<Health, "blocked_attempts">,
): boolean {
  return health.blocked_attempts >= (ordering === "review" ? TROUBLE_FROM : 1);
}

/** Stands where somebody would send something by a disabled subscription, which the server refuses. */
export const NOTHING_SENT =
  "The subscription is disabled, and sends nothing until it is enabled. Enable it first; the button is above.";
