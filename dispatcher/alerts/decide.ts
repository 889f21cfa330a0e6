import type { TroubleKind } from "../../src/outbox/mail.ts";
import type { SeenRow } from "./queries.ts";

/** How a subscription is now. */
export type Condition = Omit<SeenRow, "id" | "partnerId" | "open" | "settings">;
export type OpenIncident = SeenRow["open"][number];

export interface Verdict {
  /** How the open incident has ended. */
  readonly ended?: "recovered" | "enabled" | "deleted";
  /** Raised of the incident that has ended: that it has, or a disabling that an enable ended before anybody looked. */
  readonly closing?: readonly ("disabled" | "recovered")[];
  /** A new one begins, in which a 2xx since then is the end of the trouble. */
  readonly begins?: { readonly since: Date; readonly follows: boolean };
  /** Of the new incident if one begins, otherwise of the open one. */
  readonly raised: readonly TroubleKind[];
}

/** Permanent failures in a row that are told of (contract 7.17). */
const LEVELS = [5, 10, 18] as const;
const MINUTE_MS = 60_000;

/** What there is to tell of a subscription, after what was told already. */
export function decideAlerts(
  now: Condition,
  open: OpenIncident | undefined,
  { at, oldestWaitingMinutes }: { readonly at: Date; readonly oldestWaitingMinutes: number },
): Verdict {
  if (now.state === "deleted") return { ...(open && { ended: "deleted" }), raised: [] };
  const reached = reachedKinds(now, at.getTime() - oldestWaitingMinutes * MINUTE_MS);
  if (open === undefined)
    return reached.length === 0
      ? { raised: [] }
      : { begins: { since: at, follows: false }, raised: reached };
  // Only an enable ends the disabled state. Whether it helped is told by the incident that follows it.
  if (open.disabledAt !== null && open.disabledAt.getTime() !== now.disabledAt?.getTime())
    return {
      ended: "enabled",
      ...(!open.kinds.includes("disabled") && { closing: ["disabled"] }),
      begins: { since: open.disabledAt, follows: true },
      raised: reached,
    };
  const hasSucceeded = now.lastSuccessAt !== null && now.lastSuccessAt >= open.openedAt;
  const recovered: Pick<Verdict, "ended" | "closing"> = {
    ended: "recovered",
    ...(open.isTold && { closing: ["recovered"] }),
  };
  const hasCounted = open.kinds.some((kind) => kind.startsWith("failures_"));
  // Only a 2xx lowers the count, or an enable of what is active. What fails then begins anew.
  if (hasCounted && now.failures < open.failures)
    return {
      ...(hasSucceeded ? recovered : { ended: "enabled" }),
      ...((reached.length > 0 || !hasSucceeded) && {
        begins: { since: at, follows: !hasSucceeded },
      }),
      raised: reached,
    };
  const isCalm = reached.length === 0 && now.failures === 0 && now.state === "active";
  if (isCalm && hasSucceeded) return { ...recovered, raised: [] };
  return { raised: reached.filter((kind) => !open.kinds.includes(kind)) };
}

function reachedKinds(
  { state, failures, disabledAt, isRetrying, oldestAt }: Condition,
  oldestMs: number,
): TroubleKind[] {
  const levels = LEVELS.filter((one) => failures >= one).map((one) => `failures_${one}` as const);
  // While it is disabled its events are held: they wait for an enable, and not for the receiver. Disabling by hand raises
  // no alert.
  if (state === "disabled") return disabledAt === null ? levels : [...levels, "disabled"];
  const waits = oldestAt !== null && oldestAt.getTime() <= oldestMs;
  return [
    ...(isRetrying ? (["head_retrying"] as const) : []),
    ...(waits ? (["oldest_waiting"] as const) : []),
    ...levels,
  ];
}
