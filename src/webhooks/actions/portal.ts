import type { Db } from "../../../db/client.ts";
import { ulid } from "ulid";

import { recordAudit } from "../../auth/actions/audit.ts";
import { holdCaller } from "../../auth/actions/open-session.ts";
import {
  openPortalSession,
  type PortalSessionDeps,
} from "../../auth/actions/open-portal-session.ts";
import { refuseExcess } from "../../auth/actions/access-denied.ts";
import { authorityOf } from "../../auth/authority.ts";
import { subscriptionsOf } from "../../auth/portal-pages.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { addMs, isoInstant, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret, newSecret } from "../../lib/secrets.ts";
import { listSubscriptions } from "./subscriptions.ts";
import { tenantOf } from "./deps.ts";
import {
  DEFAULT_TTL_S,
  isOrigin,
  type Embedding,
  type PortalLink,
  type PortalLinkBody,
  type PortalSession,
} from "../portal-model.ts";
import * as queries from "../queries/portal.ts";

export interface PortalDeps extends PortalSessionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: PortalSessionDeps["config"] & Pick<Config, "serverRoot">;
}

/** Where the dashboard is shown by a link, and in frames. */
export const PORTAL = "/embed";
const SCOPES = { read: ["webhooks:read"], write: ["webhooks:read", "webhooks:write"] } as const;

/** Whose pages a link opens, and in whose name where that is not its maker's. */
interface LinkHolder {
  readonly partnerId: number;
  readonly actsAs: number | null;
}

/** `POST /partner/portal-links`. */
export function makeOwnLink(
  deps: PortalDeps,
  caller: Caller,
  body: PortalLinkBody,
): Promise<PortalLink> {
  return makeLink(deps, caller, { partnerId: tenantOf(caller.principal), actsAs: null }, body);
}

/** `POST /admin/partners/{id}/portal-links`: its session acts as the partner's first active owner. */
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
 * The code stands in the fragment, which no server and no log sees; the key before it says to the server, which has to
 * name who may frame the page, whose portal it is.
 */
async function makeLink(
  deps: PortalDeps,
  { principal, requestContext }: Caller,
  { partnerId, actsAs }: LinkHolder,
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
  await deps.db.transaction(async (tx) => {
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

/** Says of pages which of them the partner does not have. */
export async function pageErrors(
  { db }: Pick<PortalDeps, "db">,
  partnerId: number,
  { pages }: ValidParts<PortalLinkBody>,
): Promise<RuleErrors> {
  const known = pages?.filter((page) => page !== undefined) ?? [];
  if (subscriptionsOf(known).length === 0) return {};
  const all = await listSubscriptions({ db }, partnerId, {
    limit: 100,
    after: undefined,
  });
  const own = new Set(all.map(({ id }) => id));
  const bad = pages?.findIndex((page) => subscriptionsOf([page ?? ""]).some((id) => !own.has(id)));
  return { [`pages.${bad}`]: bad === -1 ? undefined : "is no subscription of the partner" };
}

/** `POST /embed/{key}/session`: opens what the link opens, once. Every failure of the code is the same 400. */
export async function redeemLink(
  deps: PortalDeps,
  code: string,
  requestContext: RequestContext,
): Promise<PortalSession> {
  const now = deps.clock.now();
  const hash = hashSecret(code);
  const link = await queries.findLink(deps.db, hash, now);
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

/** `GET /partner/embedding`. */
export async function showEmbedding(
  deps: Pick<PortalDeps, "db">,
  principal: Principal,
): Promise<Embedding> {
  const row = await queries.settingsOf(deps.db, tenantOf(principal));
  return { origins: row?.origins ?? [] };
}

/** `PATCH /partner/embedding`. */
export async function updateEmbedding(
  deps: Pick<PortalDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { origins }: Embedding,
): Promise<Embedding> {
  const partnerId = tenantOf(principal);
  await settingsOf(deps, partnerId);
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await queries.updateOrigins(tx, { partnerId, origins });
    const details = { origins: origins.length };
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
  return { [`origins.${bad}`]: bad < 0 ? undefined : ORIGIN_FAULT };
}

const ORIGIN_FAULT =
  "must be an origin such as https://app.example.com, or http:// on localhost or 127.0.0.1";

/** Who may show the pages below `/embed/{key}` in a frame; nobody below a key that is none. */
export async function framedBy({ db }: Pick<PortalDeps, "db">, key: string): Promise<string[]> {
  return /^[\w-]{1,64}$/.test(key) ? queries.originsOfKey(db, key) : [];
}

/** The partner's row, made when it is first needed. */
async function settingsOf({ db, clock }: Pick<PortalDeps, "db" | "clock">, partnerId: number) {
  const row = await queries.settingsOf(db, partnerId);
  if (row !== undefined) return row;
  const key = ulid(clock.now().getTime()).toLowerCase();
  await queries.insertSettings(db, { partnerId, key, origins: [] });
  // Another request may have been faster.
  const made = await queries.settingsOf(db, partnerId);
  if (made === undefined) throw new Error(`Partner ${partnerId} has no portal.`);
  return made;
}
