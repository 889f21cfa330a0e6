import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { SignInMethod } from "../model.ts";

/** A sign-in: the family of the tokens that come from it. */
interface AuthenticationEvent {
  /** A ULID, so that ids order sign-ins by time. */
  readonly id: string;
  readonly userId: number;
  readonly method: SignInMethod;
  readonly clientId: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly at: Date;
}

export async function insertAuthenticationEvent(tx: Tx, event: AuthenticationEvent): Promise<void> {
  await tx.sql`
    insert into authentication_events (id, user_id, method, client_id, ip, user_agent, at)
    values (${event.id}, ${event.userId}, ${event.method}, ${event.clientId}, ${event.ip}, ${event.userAgent},
      ${event.at})`;
}

/** Makes whoever issues into the family, or ends it, wait for the other: no token slips past a revocation. */
export async function lockFamily(tx: Tx, familyId: string): Promise<void> {
  await tx.sql`select 1 from authentication_events where id = ${familyId} for update`;
}

/**
 * Stamps the latest sign-in of the user (interface.md 4.1, logout). A session of an impersonator is no sign-in of the
 * user's own and leaves those alone.
 */
export async function stampLogout(
  tx: Tx,
  logout: { userId: number; impersonated: boolean; at: Date },
): Promise<void> {
  await tx.sql`
    update authentication_events set logout_time = ${logout.at}
    where id = (
      select id from authentication_events
      where user_id = ${logout.userId} and (method = 'impersonation') = ${logout.impersonated}::boolean
      order by id desc limit 1)`;
}

export async function deleteRefreshTokens(tx: DbOrTx, familyId: string): Promise<void> {
  await tx.sql`delete from tokens where family_id = ${familyId} and kind = 'refresh'`;
}
