import type { Tx } from "../../../db/client.ts";
import { Problem } from "../../lib/problem.ts";
import type { Principal } from "../../http/principal.ts";
import { holdToken } from "../queries/tokens.ts";
import { holdUser } from "../queries/users.ts";

/**
 * Call it first in a transaction that issues a token on the strength of another one: afterwards that token is known to
 * live, and a password reset and the end of that token wait. It looks at the token after the lock on the user, because a
 * reset may have come in between.
 */
export async function holdCaller(tx: Tx, principal: Principal): Promise<void> {
  if (!(await holdUser(tx, principal.userId)) || !(await holdToken(tx, principal.jti)))
    throw new Problem("unauthenticated");
}
