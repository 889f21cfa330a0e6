import type { Db } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import { isRowId } from "../../http/list.ts";
import type { Call } from "../../http/call.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Passwords } from "../../lib/password.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";

export interface AdminDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly passwords: Passwords;
}

export interface Caller {
  readonly principal: Principal;
  readonly call: Call;
}

const MAX_ID = 2_147_483_647;

/** The row that a path names; a malformed id is 404 like a missing one (decisions.md 1, order of checks). */
export async function found<Row>(
  id: string | undefined,
  read: (id: number) => Promise<Row | undefined>,
): Promise<Row> {
  const wellFormed = id !== undefined && isRowId(id) && Number(id) <= MAX_ID;
  const row = wellFormed ? await read(Number(id)) : undefined;
  if (row === undefined) throw new Problem("not_found");
  return row;
}

/** For rows that this transaction has written or holds. */
export function written<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("A row that was just written is not there.");
  return row;
}
