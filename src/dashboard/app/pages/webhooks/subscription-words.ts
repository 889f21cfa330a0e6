import { counted } from "../../ui/format.ts";
import type { Health, Subscription } from "./data/reads.ts";

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
  return reason?.replaceAll("_", " ") ?? "it was switched off";
}

/** The word of a badge: what fails now is not simply active. */
export function stateInWord(
  one: Pick<Subscription, "is_active" | "consecutive_failure_count">,
  health: Pick<Health, "blocked_by"> | undefined,
): "active" | "failing" | "disabled" {
  if (!one.is_active) return "disabled";
  const isBlocked = (health?.blocked_by ?? null) !== null;
  return one.consecutive_failure_count > 0 || isBlocked ? "failing" : "active";
}

/** Stands where somebody would send something by a disabled subscription, which the server refuses. */
export const NOTHING_SENT =
  "The subscription is disabled, and sends nothing until it is enabled. Enable it first; the button is above.";
