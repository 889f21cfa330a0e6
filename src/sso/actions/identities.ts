import type { Db } from "../../../db/client.ts";
import { endSsoAccess } from "../../auth/actions/sessions.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { holdSignIns } from "../../tenants/actions/last-owner.ts";
import type { User } from "../../tenants/model.ts";
import type { IdentityRow } from "../model.ts";
import { shareConnection } from "../queries/connections.ts";
import { canLink, deleteIdentity } from "../queries/identities.ts";

export interface IdentityDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Deletes the link between a user and an identity, and ends the user's access by single sign-on. The next sign-in with a
 * verified address of the user links anew. Throws `last_owner` for the last owner who can sign in, if the connection is
 * not active or lacks the domain of the address, so that nobody could sign in afterwards.
 *
 * Locks are taken in the order of a sign-in: users, the connection, then rows of both. So a sign-in with the identity
 * either commits before and is ended here, or finds that the link is gone.
 */
export async function unlinkIdentity(
  { db, clock }: IdentityDeps,
  { principal: actor, requestContext }: Caller,
  { user, identity }: { readonly user: User; readonly identity: IdentityRow },
): Promise<void> {
  const { id: userId } = user;
  const { id, connectionId, issuer } = identity;
  const now = clock.now();
  await db.transaction(async (tx) => {
    const last = await holdSignIns(tx, actor, user);
    const isActive = await shareConnection(tx, connectionId);
    const linksAnew = isActive && (await canLink(tx, connectionId, user.email));
    if (last !== undefined && !linksAnew) throw new Problem(last);
    if (!(await deleteIdentity(tx, id))) throw new Problem("not_found");
    const revoked = await endSsoAccess(tx, userId, now);
    const details = { user_id: userId, connection_id: connectionId, issuer, revoked };
    await recordAudit(tx, { at: now, action: "SSO_UNLINKED", actor, requestContext, details });
  });
}
