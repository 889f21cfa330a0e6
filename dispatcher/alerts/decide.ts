import type { TroubleKind } from "../../src/outbox/alert.ts";
import type { SeenRow } from "./queries.ts";

/** The present state of a subscription, from which its alerts are decided. */
export type Condition = Omit<SeenRow, "id" | "partnerId" | "disabledReason" | "open" | "settings">;
export type OpenIncident = SeenRow["open"][number];

export interface AlertDecision {
  /** The way in which the open incident has ended. */
  readonly ended?: "recovered" | "enabled" | "deleted";
  /**
   * Alerts about the open incident that has ended: about its end, or about a disabling that an enable undid before any
   * check saw it.
   */
  readonly closing?: readonly ("disabled" | "recovered")[];
  /** The new incident, if one begins. A 2xx response after `since` ends it. */
  readonly begins?: { readonly since: Date; readonly follows: boolean };
  /** Alerts of the new incident if one begins, otherwise of the open one. */
  readonly raised: readonly TroubleKind[];
}

/** The numbers of permanent failures in a row that raise an alert (contract 7.17). */
const LEVELS = [5, 10, 18] as const;
const MINUTE_MS = 60_000;

/** Decides which alerts a subscription needs, given the alerts that were raised already. */
export function decideAlerts(
  now: Condition,
  open: OpenIncident | undefined,
  { at, oldestWaitingMinutes }: { readonly at: Date; readonly oldestWaitingMinutes: number },
): AlertDecision {
  if (now.state === "deleted") return { ...(open && { ended: "deleted" }), raised: [] };
  const reached = reachedKinds(now, at.getTime() - oldestWaitingMinutes * MINUTE_MS);
  const begins = { since: at, follows: false };
  const anew = { ...(reached.length > 0 && { begins }), raised: reached };
  if (open === undefined) return anew;
  // If the disabled state has ended, which only an enable does, another incident follows. It shows whether the enable
  // helped.
  if (open.disabledAt !== null && open.disabledAt.getTime() !== now.disabledAt?.getTime())
    return {
      ended: "enabled",
      ...(!open.kinds.includes("disabled") && { closing: ["disabled"] }),
      begins: { since: open.disabledAt, follows: true },
      raised: reached,
    };
  const hasSucceeded = now.lastSuccessAt !== null && now.lastSuccessAt >= open.openedAt;
  const hasCounted = open.kinds.some((kind) => kind.startsWith("failures_"));
  // A lower count of failures ends the incident, because only a 2xx, or an enable of an active subscription, lowers the
  // count. Later failures begin a new incident.
  const hasFallen = hasCounted && now.failures < open.failures;
  if (hasFallen && !hasSucceeded)
    return { ended: "enabled", begins: { since: at, follows: true }, raised: reached };
  const isCalm = reached.length === 0 && now.failures === 0 && now.state === "active";
  if (hasSucceeded && (hasFallen || isCalm))
    return { ended: "recovered", ...(open.isTold && { closing: ["recovered"] }), ...anew };
  return { raised: reached.filter((kind) => !open.kinds.includes(kind)) };
}

function reachedKinds(
  { state, failures, disabledAt, isRetrying, oldestAt }: Condition,
  oldestMs: number,
): TroubleKind[] {
  const levels = LEVELS.filter((one) => failures >= one).map((one) => `failures_${one}` as const);
  // A disabled subscription has no alert about waiting events: these are held and wait for an enable, not for the
  // receiver. Disabling by a user raises no alert.
  if (state === "disabled") return disabledAt === null ? levels : [...levels, "disabled"];
  const waits = oldestAt !== null && oldestAt.getTime() <= oldestMs;
  return [
    ...(isRetrying ? (["head_retrying"] as const) : []),
    ...(waits ? (["oldest_waiting"] as const) : []),
    ...levels,
  ];
}
