import type { Db } from "../../../db/client.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Passwords } from "../../lib/password.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import type { WriterPool } from "../../outbox/writer-pool.ts";
import type { Waker } from "../../outbox/schedule.ts";

export interface AdminDeps {
  readonly db: Db;
  /** Runs every transaction that locks the sequence of a subscription. */
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly passwords: Passwords;
  readonly schedule: Waker;
  readonly config: Pick<
    Config,
    "serverRoot" | "batchHourMs" | "egress" | "deletionWaitDays" | "securityMails"
  >;
}

/**
 * Narrows the type of a database row that must exist, because this transaction has written it or holds its lock.
 * Throws if it does not.
 */
export function existing<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("A row that this transaction has written is missing.");
  return row;
}

/**
 * Returns the row. Throws `not_found` if it is undefined, because another request may have deleted it since the route
 * found it.
 */
export function orNotFound<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Problem("not_found");
  return row;
}
