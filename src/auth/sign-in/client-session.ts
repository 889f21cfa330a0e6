import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { AuditAction } from "../../audit/model.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { deleteFamily, lockFamily } from "./session-queries.ts";
import { shareClient } from "../tokens/queries.ts";
import { holdUser, type PersonRow } from "../user-queries.ts";
import { openSession } from "./open-session.ts";
import { type ClientTokenLives, issueRefreshToken } from "./refresh-session.ts";

interface ClientSessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS"> & ClientTokenLives;
}

interface ClientSignIn {
  readonly user: { readonly id: number; readonly companyId: number };
  readonly method: "password_grant" | "authorization_code";
  readonly client: { readonly clientId: string; readonly grantTypes: readonly string[] };
  readonly scope: string;
  readonly requestContext: RequestContext;
  readonly now: Date;
}

export interface ClientSession {
  readonly familyId: string;
  readonly access: string;
  /** The refresh token; null if the client may not use the refresh grant. */
  readonly refresh: string | null;
}

const GRANT_OF = { password_grant: "password", authorization_code: "authorization_code" } as const;

/**
 * Opens a session of a user in an OAuth client. The caller must have locked the user's row. Returns undefined if the
 * client was deleted or may not use the grant any more.
 */
export async function openClientSession(
  tx: Tx,
  deps: ClientSessionDeps,
  { client, ...signIn }: ClientSignIn,
): Promise<ClientSession | undefined> {
  const { clientId, grantTypes } = client;
  if (!(await shareClient(tx, clientId, GRANT_OF[signIn.method]))) return undefined;
  const { token: access, familyId } = await openSession(tx, deps, { ...signIn, clientId });
  if (!grantTypes.includes("refresh_token")) return { familyId, access, refresh: null };
  const { user, scope, now } = signIn;
  const holder = { userId: user.id, familyId, clientId, scope, signedInAt: now, now };
  return { familyId, access, refresh: (await issueRefreshToken(tx, deps, holder)).token };
}

/** Locks an active user against a concurrent password reset, as `holdUser` does. `src/oauth` and `src/sso` call it. */
export function holdPerson(tx: Tx, userId: number): Promise<PersonRow | undefined> {
  return holdUser(tx, userId);
}

/**
 * Locks the user's row as `holdUser` does, then locks the client against deletion. Every transaction takes locks in
 * this order: the user, the client, then the rows that belong to both. Returns undefined if the user is not active,
 * or if the client was deleted or lacks the grant.
 */
export async function holdPersonInClient(
  tx: Tx,
  { userId, clientId, grant }: { userId: number; clientId: string; grant: string },
): Promise<PersonRow | undefined> {
  const person = await holdUser(tx, userId);
  return person !== undefined && (await shareClient(tx, clientId, grant)) ? person : undefined;
}

/** Revokes all tokens of a user's sign-in at an OAuth client and records the reason in the audit log. */
export async function endClientSession(
  tx: Tx,
  familyId: string,
  ending: {
    at: Date;
    action: AuditAction;
    user: { id: number; companyId: number };
    requestContext: RequestContext;
    details: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  await lockFamily(tx, familyId);
  const revoked = await deleteFamily(tx, familyId);
  const { at, action, user, requestContext } = ending;
  const actor = { userId: user.id, companyId: user.companyId, impersonatorId: null };
  const details = { ...ending.details, session_id: familyId, revoked };
  await recordAudit(tx, { at, action, actor, requestContext, details });
}
