import type { Db } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { WriterPool } from "../../outbox/writer-pool.ts";
import type { Waker } from "../../outbox/schedule.ts";
import type { Subscription } from "../model.ts";

export interface WebhookDeps {
  readonly db: Db;
  /** For whatever takes the sequence of a subscription. */
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly config: Pick<Config, "batchHourMs" | "retentionDays">;
}

/** The access rule admits users of a partner only; this says it to the types. */
export function tenantOf({ partnerId }: Principal): number {
  if (partnerId === null) throw new Problem("forbidden");
  return partnerId;
}

/** After the commit, like every wake: the dispatcher reads settings and entries anew. */
export async function wake(
  { schedule }: Pick<WebhookDeps, "schedule">,
  { id, shard }: Pick<Subscription, "id" | "shard">,
): Promise<void> {
  await schedule.wake([{ subscriptionId: id, shard }]);
}

/** For rows that were there when the route looked them up, and are gone by the time their lock is held. */
export function stillThere<T>(row: T | undefined): T {
  if (row === undefined) throw new Problem("not_found");
  return row;
}
