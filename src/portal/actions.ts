import type { Db } from "../../db/client.ts";
import { ulid } from "ulid";

import { changesOf } from "../auth/audit-changes.ts";
import { recordAudit } from "../auth/queries/audit.ts";
import { holdCaller } from "../auth/actions/open-session.ts";
import { openPortalSession, type PortalSessionDeps } from "../auth/actions/open-portal-session.ts";
import { refuseExcess } from "../auth/actions/access-denied.ts";
import { authorityOf } from "../auth/authority.ts";
import { guardReceivers } from "../auth/guard.ts";
import { subscriptionsOf } from "../auth/portal-pages.ts";
import { creating } from "../auth/actions/keyed-requests.ts";
import { rejectIfSuspended } from "../webhooks/actions/state.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { ValidParts } from "../http/fields.ts";
import { type Caller, type Principal, tenantOf } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import { addMs, isoInstant, type Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import { Problem } from "../lib/problem.ts";
import { hashSecret, newSecret } from "../lib/secrets.ts";
import {
  DEFAULT_TTL_S,
  isOrigin,
  type Embedding,
  type PortalLink,
  type PortalLinkBody,
  type PortalSession,
} from "./model.ts";
import * as queries from "./queries.ts";

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

/** Creates a link to pages of the caller's own partner. Its session acts as the caller. */
export function makeOwnLink(
  deps: PortalDeps,
  caller: Caller,
  body: PortalLinkBody,
): Promise<PortalLink> {
  return makeLink(deps, caller, { partnerId: tenantOf(caller.principal), actsAs: null }, body);
}

/** Creates a link for an operator. Its session acts as the partner's first active owner. */
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
 * Creates a link. Its code is in the fragment, so that no server and no log sees it. The key in the path identifies
 * the partner to the server, which has to send the origins that may frame the page.
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
    // An operator's token outlives a suspension of the partner; those of the partner's own people end with it.
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

/** Checks that the pages belong to subscriptions of the partner. */
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

/** Opens the session of a link, once. Every invalid code, and one at the key of another partner, gets the same 400. */
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

/** Whether a text of a path may be the key of a portal. PostgreSQL rejects some others, such as NUL. */
const isKey = (text: string): boolean => /^[\w-]{1,64}$/.test(text);

/** Reads the portal settings of a partner, and creates them on first use. */
async function settingsOf({ db, clock }: Pick<PortalDeps, "db" | "clock">, partnerId: number) {
  const row = await queries.settingsOf(db, partnerId);
  if (row !== undefined) return row;
  const key = ulid(clock.now().getTime()).toLowerCase();
  await queries.insertSettings(db, { partnerId, key, origins: [] });
  // A concurrent request may have created the settings first.
  const made = await queries.settingsOf(db, partnerId);
  if (made === undefined) throw new Error(`Partner ${partnerId} has no portal.`);
  return made;
}
