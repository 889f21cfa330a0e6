import type { Db } from "../../../db/client.ts";
import { isRowId } from "../../http/list.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Passwords } from "../../lib/password.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { Waker } from "../../outbox/schedule.ts";

export interface AdminDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly passwords: Passwords;
  readonly schedule: Waker;
  readonly config: Pick<Config, "serverRoot">;
}

const MAX_ID = 2_147_483_647;

/**
 * Loads the database row whose id is in the path. Throws `not_found` if the row is missing or the id is malformed
 * (contract 2.6).
 */
export async function findRow<Row>(
  id: string | undefined,
  read: (id: number) => Promise<Row | undefined>,
): Promise<Row> {
  const wellFormed = id !== undefined && isRowId(id) && Number(id) <= MAX_ID;
  const row = wellFormed ? await read(Number(id)) : undefined;
  if (row === undefined) throw new Problem("not_found");
  return row;
}

/**
 * Narrows the type of a database row that must exist, because this transaction has written it or holds its lock.
 * Throws if it does not.
 */
export function existing<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("A row that this transaction has written is missing.");
  return row;
}
