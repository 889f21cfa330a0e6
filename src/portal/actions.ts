import { ulid } from "ulid";

import * as queries from "./queries.ts";
import type { Db, Tx } from "../../db/client.ts";
import { changesOf } from "../audit/changes.ts";
import { recordAudit } from "../audit/queries.ts";
import { refuseExcess } from "../auth/access/access-denied.ts";
import { authorityOf } from "../auth/access/authority.ts";
import { guardReceivers } from "../auth/access/guard.ts";
import { subscriptionsOf } from "../auth/access/portal-pages.ts";
import { creating } from "../auth/keyed-requests.ts";
import type { KeyRing } from "../auth/keys/key-ring.ts";
import { holdCaller, issueToken } from "../auth/sign-in/open-session.ts";
import { insertAuthenticationEvent } from "../auth/sign-in/queries.ts";
import { holdToken } from "../auth/tokens/queries.ts";
import { holdUser } from "../auth/user-queries.ts";
import type { ValidParts } from "../http/fields.ts";
import { type Caller, type Principal, tenantOf } from "../http/principal.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { RuleErrors } from "../http/rules.ts";
import { addMs, isoInstant, type Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import { Problem } from "../lib/problem.ts";
import { hashSecret, newSecret } from "../lib/secrets.ts";
import { rejectIfSuspended } from "../webhooks/actions/state.ts";
import {
  DEFAULT_TTL_S,
  isOrigin,
  type Embedding,
  type PortalLink,
  type PortalLinkBody,
  type PortalSession,
} from "./model.ts";

export interface PortalDeps extends PortalSessionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: PortalSessionDeps["config"] & Pick<Config, "serverRoot">;
}

/** Path of the pages that a portal link opens, alone or in a frame. */
export const PORTAL = "/embed";
const SCOPES = { read: ["webhooks:read"], write: ["webhooks:read", "webhooks:write"] } as const;

interface LinkTarget {
  /** The partner that the pages of the link belong to. */
  readonly partnerId: number;
  /** The user that the session of the link acts as; null for the user who creates the link. */
  readonly actsAs: number | null;
}

/** Creates a portal link to pages of the caller's own partner. The session that the link opens acts as the caller. */
export function makeOwnLink(
  deps: PortalDeps,
  caller: Caller,
  body: PortalLinkBody,
): Promise<PortalLink> {
  return makeLink(deps, caller, { partnerId: tenantOf(caller.principal), actsAs: null }, body);
}

/** Creates a portal link for an operator. The session that the link opens acts as the partner's first active owner. */
export async function makeOperatorLink(
  deps: PortalDeps,
  caller: Caller,
  partnerId: number,
  body: PortalLinkBody,
): Promise<PortalLink> {
  const actsAs = await queries.activeOwnerOf(deps.db, partnerId);
  if (actsAs === undefined) throw new Problem("no_owner");
  return makeLink(deps, caller, { partnerId, actsAs }, body);
}

/**
 * Creates a portal link. Its code is in the fragment of the URL, so that browsers send it to no server and no server
 * logs it. The key in the path identifies the partner, because the server sends the origins that may frame the
 * partner's pages with the page.
 */
async function makeLink(
  deps: PortalDeps,
  { principal, requestContext }: Caller,
  { partnerId, actsAs }: LinkTarget,
  { pages, access = "read", theme, ttl_s: ttlS = DEFAULT_TTL_S }: PortalLinkBody,
): Promise<PortalLink> {
  const scopes = SCOPES[access];
  const authority = { ...authorityOf(principal), partnerId, scopes };
  await refuseExcess(deps, { principal, requestContext }, authority, { scopes });
  const { key } = await settingsOf(deps, partnerId);
  const now = deps.clock.now();
  const code = newSecret();
  const expiresAt = addMs(now, ttlS * 1000);
  const scope = scopes.join(" ");
  await creating(deps.db, { requestContext }, async (tx) => {
    // The suspension of a partner revokes the tokens of its users, but not an operator's token. So an operator's
    // request is rejected here if the partner is suspended.
    if (actsAs !== null) await rejectIfSuspended(tx, partnerId);
    await holdCaller(tx, principal);
    const { jti } = principal;
    const codeHash = hashSecret(code);
    await queries.insertLink(tx, { codeHash, jti, scope, pages, expiresAt, actsAs });
    const details = { pages, scope, expires_at: expiresAt, partner_id: partnerId };
    await recordAudit(tx, {
      at: now,
      action: "PORTAL_LINK_CREATED",
      actor: principal,
      requestContext,
      details,
    });
  });
  const query = theme === undefined ? "" : `?theme=${theme}`;
  const url = `${deps.config.serverRoot}${PORTAL}/${key}${query}#code=${code}`;
  return { url, expires_at: isoInstant(expiresAt) };
}

/** Returns an error for the first page that names a subscription which the partner does not have. */
export async function pageErrors(
  { db }: Pick<PortalDeps, "db">,
  partnerId: number,
  { pages }: ValidParts<PortalLinkBody>,
): Promise<RuleErrors> {
  const known = pages?.filter((page) => page !== undefined) ?? [];
  const named = subscriptionsOf(known);
  if (named.length === 0) return {};
  const own = await queries.ownSubscriptions(db, partnerId, named);
  const bad = pages?.findIndex((page) => subscriptionsOf([page ?? ""]).some((id) => !own.has(id)));
  return { [`pages.${bad}`]: bad === -1 ? undefined : "is no subscription of the partner" };
}

/**
 * Exchanges the code of a portal link for a session, once. An invalid code, and a code that belongs to another partner
 * than the key, get the same 400.
 */
export async function redeemLink(
  deps: PortalDeps,
  { key, code }: { readonly key: string; readonly code: string },
  requestContext: RequestContext,
): Promise<PortalSession> {
  const now = deps.clock.now();
  const hash = hashSecret(code);
  const link = isKey(key) ? await queries.findLink(deps.db, { hash, key, now }) : undefined;
  if (link === undefined) throw new Problem("invalid_code");
  const opened = await deps.db.transaction((tx) => {
    const consume = () => queries.consumeLink(tx, hash);
    return openPortalSession(tx, deps, link, { consume, requestContext, now });
  });
  if (opened === undefined) throw new Problem("invalid_code");
  const { token, expiresInS } = opened;
  const { scope, pages } = link;
  return { token, token_type: "Bearer", expires_in: expiresInS, scope, pages };
}

export async function showEmbedding(
  deps: Pick<PortalDeps, "db">,
  principal: Principal,
): Promise<Embedding> {
  const row = await queries.settingsOf(deps.db, tenantOf(principal));
  return { origins: row?.origins ?? [] };
}

export async function updateEmbedding(
  deps: Pick<PortalDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { origins }: Embedding,
): Promise<Embedding> {
  const partnerId = tenantOf(principal);
  await settingsOf(deps, partnerId);
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    const before = { origins: await queries.lockOrigins(tx, partnerId) };
    guardReceivers(principal, before.origins, origins);
    await queries.updateOrigins(tx, { partnerId, origins });
    const changes = changesOf(["origins"], before, { origins });
    const details = { origins: origins.length, changes };
    await recordAudit(tx, {
      at,
      action: "EMBEDDING_UPDATED",
      actor: principal,
      requestContext,
      details,
    });
  });
  return { origins };
}

export function originErrors({ origins }: ValidParts<Embedding>): RuleErrors {
  const bad = origins?.findIndex((one) => one !== undefined && !isOrigin(one)) ?? -1;
  return { [`origins.${bad}`]: bad < 0 ? undefined : ORIGIN_ERROR };
}

const ORIGIN_ERROR =
  "must be an origin such as https://app.example.com, or http:// on localhost or 127.0.0.1";

/** Returns the origins that may frame the pages below `/embed/{key}`; none for an unknown key. */
export async function framedBy({ db }: Pick<PortalDeps, "db">, key: string): Promise<string[]> {
  return isKey(key) ? queries.originsOfKey(db, key) : [];
}

/**
 * Returns whether a segment of a path can be the key of a partner's portal. Other texts are not searched for, because
 * PostgreSQL rejects some of them, such as a text with NUL.
 */
const isKey = (text: string): boolean => /^[\w-]{1,64}$/.test(text);

/** Reads the portal settings of a partner, and creates them on first use. */
async function settingsOf({ db, clock }: Pick<PortalDeps, "db" | "clock">, partnerId: number) {
  const row = await queries.settingsOf(db, partnerId);
  if (row !== undefined) return row;
  const key = ulid(clock.now().getTime()).toLowerCase();
  await queries.insertSettings(db, { partnerId, key, origins: [] });
  // The settings are read again, because a concurrent request may have inserted its own first.
  const made = await queries.settingsOf(db, partnerId);
  if (made === undefined) throw new Error(`Partner ${partnerId} has no portal.`);
  return made;
}

/** Lifetime in seconds of a session that a portal link opens. The session cannot be refreshed (contract 6.20). */
const PORTAL_SESSION_S = 3_600;

interface PortalSessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

/** The access that a portal link gives, and the user whom the session of the link acts as. */
interface OpenedLink {
  readonly userId: number;
  /** The operator who created the link; null if a user of the partner created it. */
  readonly impersonatorId: number | null;
  /** The id of the token that created the link. The session of the link ends together with that token. */
  readonly parentJti: string;
  readonly clientId: string | null;
  readonly scope: string;
  readonly pages: readonly string[];
}

/**
 * Opens the session of a portal link. `consume` deletes the link and returns false if another request has already used
 * it. The function returns undefined if the link was used before, if the user, the company or the operator is not
 * active, or if the token that created the link has ended. Only a successful call uses up the link.
 */
async function openPortalSession(
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
  // Users are locked before the token that created the link, because transactions that revoke tokens take the locks in
  // this order. They also delete the links of the tokens.
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
