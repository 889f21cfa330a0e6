import type { Db } from "../../../db/client.ts";
import { creating } from "../keyed-requests.ts";
import type { Page } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { addMs, type Clock, isoInstant, parseInstant } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Log } from "../../lib/log.ts";
import { Problem } from "../../lib/problem.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { recordAudit } from "../../audit/queries.ts";
import * as queries from "./queries.ts";
import { findBearers } from "../access/queries.ts";
import { deleteToken } from "./queries.ts";
import { holdUser } from "../user-queries.ts";
import { TOKEN_ID } from "./api-tokens.ts";
import { readToken, stampUse } from "../access/authenticate.ts";
import { issueToken } from "../sign-in/open-session.ts";

/** Dependencies of the functions for tokens of services (contract 10.7). */
interface ServiceDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
}

interface Service {
  readonly id: number;
  readonly scopes: readonly string[];
}

const DAY_MS = 86_400_000;
/** Longest lifetime of a service's token in days. */
const MAX_TOKEN_DAYS = 400;
/** Maximum number of live tokens of a service: enough for several deployments and an overlapping rotation. */
const TOKENS_PER_SERVICE = 20;

export function tokenErrors(
  { clock }: Pick<ServiceDeps, "clock">,
  text: string | undefined,
): RuleErrors {
  const now = clock.now();
  const end = parseInstant(text);
  const isFine = end === undefined || (end > now && end <= addMs(now, MAX_TOKEN_DAYS * DAY_MS));
  return {
    expires_at: isFine
      ? undefined
      : `must be in the future, at most ${MAX_TOKEN_DAYS} days from now`,
  };
}

/** Issues a token to a service. Earlier tokens stay valid, so that they can be replaced without a gap. */
export async function issueServiceToken(
  { db, clock, keys }: ServiceDeps,
  { principal, requestContext }: Caller,
  { id: userId, scopes }: Service,
  { name, expiresAt: end }: { readonly name: string; readonly expiresAt: string },
) {
  const now = clock.now();
  const expiresAt = parseInstant(end) ?? now;
  return creating(db, { requestContext }, async (tx) => {
    if (!(await holdUser(tx, userId))) throw new Problem("not_found");
    if ((await queries.countTokensOfService(tx, userId, now)) >= TOKENS_PER_SERVICE)
      throw new Problem("limit_reached");
    const ttlS = (expiresAt.getTime() - now.getTime()) / 1000;
    const none = { familyId: null, clientId: null, impersonatorId: null };
    const scope = scopes.join(" ");
    const grant = { ...none, kind: "service", userId, scope, ttlS, now, name } as const;
    const issued = await issueToken(tx, keys, grant);
    const details = { kind: "service", jti: issued.jti, service_id: userId };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "TOKEN_ISSUED", details });
    const { token: accessToken, jti: id } = issued;
    return { id, name, createdAt: now, expiresAt, lastUsedAt: null, accessToken };
  });
}

export function listServiceTokens(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { id }: Service,
  page: Page,
) {
  return queries.tokensOfServices(db, [id], { now: clock.now(), page });
}

/** Reads the live tokens of services, and returns a function that adds them to one of these services. */
export async function readTokens(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  services: readonly Pick<Service, "id">[],
) {
  const ids = services.map(({ id }) => id);
  const all = await queries.tokensOfServices(db, ids, { now: clock.now() });
  const ofService = Map.groupBy(all, ({ serviceId }) => serviceId);
  return <S extends Pick<Service, "id">>(one: S) => ({
    ...one,
    tokens: ofService.get(one.id) ?? [],
  });
}

/** Revokes a token of a service at once. */
export async function revokeServiceToken(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id }: Service,
  jti: string,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    const isKnown = TOKEN_ID.test(jti) && (await queries.hasToken(tx, id, jti));
    if (!isKnown || !(await deleteToken(tx, jti))) throw new Problem("not_found");
    const details = { kind: "service", jti, service_id: id };
    await recordAudit(tx, {
      at,
      action: "TOKEN_REVOKED",
      actor: principal,
      requestContext,
      details,
    });
  });
}

/**
 * Handles token introspection for a platform service, like RFC 7662: returns the user of a token that ReviewRelay has
 * issued, and its authority now. The introspection counts as a use of the token, because somebody has presented the
 * token to the platform service.
 */
export async function introspect(
  deps: ServiceDeps & {
    readonly log: Log;
    readonly config: Pick<Config, "sessionLimits" | "operatorsRequireSecondFactor">;
  },
  token: string,
  requestContext: RequestContext,
) {
  const find = async (jti: string) =>
    (await findBearers(deps.db, [jti], deps.config.sessionLimits)).get(jti);
  const live = await readToken(deps, find, token);
  // A sign-in that still waits for a second factor gives no access (contract 4.27).
  if (live === undefined || live.principal.tokenKind === "challenge") return { active: false };
  stampUse(deps, live, requestContext);
  const { principal, endsAt } = live;
  return {
    active: true,
    kind: principal.tokenKind,
    user_id: principal.userId,
    role: principal.role,
    company_id: principal.companyId,
    partner_id: principal.partnerId,
    account_id: principal.accountId,
    store_ids: principal.storeIds === null ? null : [...principal.storeIds],
    impersonator_id: principal.impersonatorId,
    client_id: principal.clientId,
    scope: [...principal.scopes].join(" "),
    expires_at: endsAt === null ? null : isoInstant(endsAt),
  };
}
