import type { Db } from "../../../db/client.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import type { WriterPool } from "../../outbox/writer-pool.ts";
import type { Waker } from "../../outbox/schedule.ts";
import type { Subscription } from "../model.ts";

export interface WebhookDeps {
  readonly db: Db;
  /** Runs every transaction that locks the sequence of a subscription. */
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly config: Pick<Config, "batchHourMs" | "retentionDays" | "securityMails">;
}

/**
 * Wakes the dispatcher of a subscription, which then reads its settings and entries again. The caller has committed its
 * changes.
 */
export function wake(
  { schedule }: Pick<WebhookDeps, "schedule">,
  { id, shard }: Pick<Subscription, "id" | "shard">,
): void {
  schedule.wake([{ subscriptionId: id, shard }]);
}

/**
 * Returns a row, or throws `not_found`: the row may have been deleted between the look-up of the route and the lock.
 */
export function orNotFound<T>(row: T | undefined): T {
  if (row === undefined) throw new Problem("not_found");
  return row;
}
