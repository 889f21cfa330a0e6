import { isFresh, type Actor } from "../actor/state.ts";
import type { Holdings } from "../shards/holdings.ts";

/**
 * What keeps a send from beginning although it has its slot. `stopped`: the actor stops, or its subscription has ended.
 * `unsafe`: the lease may be over; a process that stood still learns it here, before any timer tells it. `stale`: the
 * settings that it would be sent with are too old.
 */
export function obstacleTo(
  { readAt }: { readonly readAt: Date },
  actor: Pick<Actor, "stopping" | "subscription">,
  { isSafe, now }: { readonly isSafe: boolean; readonly now: Date },
): "stopped" | "unsafe" | "stale" | undefined {
  if (actor.stopping || actor.subscription === undefined) return "stopped";
  if (!isSafe) return "unsafe";
  return isFresh(readAt, now) ? undefined : "stale";
}

/**
 * Whether a request that began under this id may leave, asked right before its first byte: a look-up or a connection
 * can take longer than the lease (contract 7.4).
 */
export function mayLeave(
  id: string,
  { stopping }: Pick<Actor, "stopping">,
  holdings: Pick<Holdings, "id" | "safe">,
): boolean {
  return id === holdings.id && holdings.safe && !stopping;
}
