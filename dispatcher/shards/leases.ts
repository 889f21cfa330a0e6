import { SHARDS } from "../../src/outbox/schedule.ts";

/*
 * Leases say who delivers what. A dispatcher's row is its lease; shards refer to the row of their owner. Each renewal
 * moves the row on, and who stands still for too long before the eyes of another is declared dead by it: the row is
 * deleted, its shards are free at once, and because every commit first locks the writer's own row, the dead can write
 * nothing more. Nothing that the dead had to do is looked at for that: whoever claims the shards finds them orphaned, and
 * marks what it repeats. Shards that move between the living are given up by their owner after its last request for them
 * has ended.
 */

/** Who saw for so long, by its own clock, that a lease was not renewed may end it. */
export const LEASE_TTL_MS = 3_500;
/** How often a lease is renewed. */
export const LEASE_RENEW_MS = 1_000;
/** How long after a renewal something new may be sent: it ends well before anybody else may take over. */
export const LEASE_SAFE_MS = 2_500;
/** How often a dispatcher looks at the heartbeats of the others: a death is seen up to twice this after the TTL. */
export const LEASE_WATCH_MS = 200;
/** How often one looks that is alone, whether another has joined. */
export const LEASE_GLANCE_MS = 1_000;
/** A look that comes later than this after the one before it begins anew: the others may not have reached Postgres either. */
export const LEASE_BLIND_MS = 2_000;

/** One holding of a shard. */
export interface Claim {
  /** How often the shard has been claimed. */
  readonly epoch: number;
  /** An earlier holder died, and the first entries of its lanes may have been sent already. */
  readonly orphaned: boolean;
}

/** The row of a dispatcher as it was read: `renewedAt` moves with each renewal and is no time to anybody else. */
export interface Heartbeat {
  readonly id: string;
  readonly renewedAt: Date;
}

/** How many shards a dispatcher should hold. All compute the same: of a remainder the first ones by id get one each. */
export function fairShare(living: readonly string[], id: string): number {
  const sorted = living.toSorted();
  const rank = sorted.indexOf(id);
  if (rank < 0) return 0;
  return Math.floor(SHARDS / sorted.length) + (rank < SHARDS % sorted.length ? 1 : 0);
}
