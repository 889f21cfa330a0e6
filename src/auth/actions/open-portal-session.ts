import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../key-ring.ts";
import { insertAuthenticationEvent } from "../queries/sign-in.ts";
import { holdToken } from "../queries/tokens.ts";
import { holdUser } from "../queries/users.ts";
import { issueToken } from "./open-session.ts";

/**
 * Lifetime in seconds of a session that a portal link opens. It lasts one hour at most and cannot be refreshed
 * (contract 6.20).
 */
const PORTAL_SESSION_S = 3_600;

export interface PortalSessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

/** The access that a portal link gives, and the user for whom it acts. */
interface OpenedLink {
  readonly userId: number;
  /** The operator who made the link to a partner's pages; null if a user of the partner made the link. */
  readonly impersonatorId: number | null;
  /** The token that made the link. The session ends together with that token. */
  readonly parentJti: string;
  readonly clientId: string | null;
  readonly scope: string;
  readonly pages: readonly string[];
}

/**
 * Opens the session of a portal link. `consume` marks the link as used and returns false if it was already used.
 * Returns undefined if the link was used before, if the user, the company or the operator is not active, or if the token
 * that made the link has ended; the link is used up in none of these cases.
 */
export async function openPortalSession(
  tx: Tx,
  { keys, config }: PortalSessionDeps,
  link: OpenedLink,
  {
    consume,
    requestContext,
    now,
  }: { consume: () => Promise<boolean>; requestContext: RequestContext; now: Date },
): Promise<{ token: string; expiresInS: number } | undefined> {
  const { userId, impersonatorId, parentJti, clientId, scope, pages } = link;
  // Users are locked before the token that made the link, as in every transaction that revokes tokens: revoking a
  // token also deletes its links.
  if (impersonatorId !== null && !(await holdUser(tx, impersonatorId))) return undefined;
  const person = await holdUser(tx, userId);
  if (person === undefined || !(await holdToken(tx, parentJti))) return undefined;
  if (!(await consume())) return undefined;
  const familyId = ulid(now.getTime());
  const { ip, userAgent } = requestContext;
  const event = { id: familyId, userId, method: "portal", clientId, ip, userAgent } as const;
  await insertAuthenticationEvent(tx, { ...event, at: now });
  const ttlS = Math.min(PORTAL_SESSION_S, config.accessTokenTtlS);
  const grant = { kind: "portal", userId, familyId, clientId, impersonatorId, parentJti } as const;
  const { token, jti } = await issueToken(tx, keys, { ...grant, scope, pages, ttlS, now });
  await recordAudit(tx, {
    at: now,
    action: "PORTAL_LINK_REDEEMED",
    actor: { userId, companyId: person.companyId, impersonatorId },
    requestContext,
    details: { session_id: familyId, jti, pages, scope },
  });
  return { token, expiresInS: ttlS };
}
