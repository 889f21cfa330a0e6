import { counted } from "../../../ui/format.ts";
import type { DeliveryKind, Health, Subscription } from "./reads.ts";

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
      "We POST each event to your endpoint within seconds, strictly in order, and retry failed attempts. Use it for live dashboards, alerts and anything that reacts to a review.",
  },
  {
    kind: "batch",
    title: "Batch",
    short: "The review events of the last hours, at a fixed interval.",
    purpose:
      "Every few hours we POST all review events since the last batch, one event per request. Use it for nightly imports and reports.",
  },
];

export function kindTitle(kind: DeliveryKind): string {
  return kind === "batch" ? "Batch" : "Immediate";
}

type Facts = Pick<
  Subscription,
  "delivery_kind" | "batch_interval_hours" | "events" | "payload_mode" | "ordering"
>;

/** Summarizes in a phrase which events a subscription receives. */
export function eventsInWords(one: Facts): string {
  if (one.delivery_kind === "batch")
    return `every ${counted(one.batch_interval_hours ?? 0, "hour")}`;
  const events = one.events === null ? "all events" : counted(one.events.length, "event");
  const ordering = one.ordering === "review" ? "strict order per review" : "strict order";
  return `${events}, ${one.payload_mode} body, ${ordering}`;
}

/** Describes in a phrase why a subscription is disabled. */
export function disabledBecause({
  disabled_reason: reason,
  disabled_note: note,
  consecutive_failure_count: failures,
}: Pick<Subscription, "disabled_reason" | "disabled_note" | "consecutive_failure_count">): string {
  if (reason === "consecutive_failures")
    return `${failures} events in a row could not be delivered`;
  if (reason === "operator") return `the platform disabled it: ${note?.replace(/\.$/, "")}`;
  if (reason === "suspended") return "the partner is suspended";
  if (reason === "manual") return "it was disabled manually";
  return reason?.replaceAll("_", " ") ?? "it was disabled";
}

/** Number of failed attempts of one event from which it counts as trouble (contract 6.17). */
const TROUBLE_FROM = 2;

/**
 * Returns the state of a disabled subscription, or the condition of an active one. A healthy subscription without any
 * success is `active`, because nothing has shown yet that it works.
 */
export function conditionOf(
  { is_active: isActive }: Pick<Subscription, "is_active">,
  health: Pick<Health, "condition" | "last_success_at"> | undefined,
) {
  if (!isActive) return "disabled";
  const condition = health?.condition ?? "active";
  return condition === "healthy" && health?.last_success_at === null ? "active" : condition;
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

/** Text in place of controls that send events, because the API rejects their requests for a disabled subscription. */
export const NOTHING_SENT =
  "The subscription is disabled and sends nothing. Enable it first with the button above.";
