import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import type { SignInMethod } from "../../http/principal.ts";

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

/** A sign-in that still has a live token. */
export interface SessionRow {
  readonly id: string;
  readonly userId: number;
  readonly method: SignInMethod;
  readonly clientId: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly at: Date;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date;
}

const session = (db: DbOrTx, now: Date) => db.sql`
  select e.id, e.user_id as "userId", e.method, e.client_id as "clientId", e.ip, e.user_agent as "userAgent", e.at,
    max(t.last_used_at) as "lastUsedAt", max(t.expires_at) as "expiresAt"
  from authentication_events e
  join tokens t on t.family_id = e.id and t.expires_at > ${now} and t.redeemed_at is null`;

/** Newest first. */
export async function sessionsOf(
  db: DbOrTx,
  userId: number,
  { now, page }: { now: Date; page: Page },
): Promise<SessionRow[]> {
  const before = page.after === undefined ? db.sql`` : db.sql`and e.id < ${page.after}`;
  return db.sql<SessionRow[]>`
    ${session(db, now)} where t.user_id = ${userId} ${before}
    group by e.id order by e.id desc limit ${page.limit + 1}`;
}

export async function findSession(
  db: DbOrTx,
  id: string,
  now: Date,
): Promise<SessionRow | undefined> {
  const [row] = await db.sql<SessionRow[]>`${session(db, now)} where e.id = ${id} group by e.id`;
  return row;
}

/** Ends a sign-in; in one order, as every deletion of several tokens. */
export async function deleteFamily(tx: Tx, familyId: string): Promise<number> {
  const result = await tx.sql`
    delete from tokens where jti in (
      select jti from tokens where family_id = ${familyId} order by jti for update)`;
  return result.count;
}

export async function stampLogoutOf(tx: Tx, familyId: string, at: Date): Promise<void> {
  await tx.sql`update authentication_events set logout_time = ${at} where id = ${familyId}`;
}
