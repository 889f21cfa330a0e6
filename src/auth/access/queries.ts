// The statements are raw SQL (db/statement.ts), because the bearer check reads tokens with every request.
import { eq, getTableColumns, notInArray, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { companies, services, users, userStores } from "../../../db/schema/companies.ts";
import { authenticationEvents, oauthClients, tokens } from "../../../db/schema/tokens.ts";
import { instant, list, nullable, statement, value, type ValuesOf } from "../../../db/statement.ts";
import type { Config } from "../../lib/config.ts";

/**
 * The limits of a session of the product's own pages (contract 4.24), as SQL expressions of type integer; null switches
 * a limit off.
 */
export interface SessionLimits {
  readonly maxHours: SQL;
  readonly idleMinutes: SQL;
}

/**
 * Computes the instant at which the session limits end a session of the product's own pages. The result is null if both
 * limits are switched off, for the token of an OAuth client, and for every token outside of a sign-in. If one limit is
 * null, `least` ignores it. The first argument contains the rows of the token and of its sign-in.
 */
export function sessionEnd(
  { token, signIn }: { readonly token: SQL; readonly signIn: SQL },
  { maxHours, idleMinutes }: SessionLimits,
): SQL {
  return sql`case when ${token}.kind = 'access' and ${token}.client_id is null then least(
    ${signIn}.at + make_interval(hours => ${maxHours}),
    coalesce(${token}.last_used_at, ${token}.issued_at) + make_interval(mins => ${idleMinutes})) end`;
}

/**
 * Selects a live token with the rows of all tables that its validity depends on (contract 4.3). The bearer check and
 * the event stream share this query. Every join is by primary key. No row is returned in these cases:
 * - the token was revoked;
 * - the user, the company or its partner is inactive;
 * - the impersonator is no longer an active admin or integration of the account's partner or, for a portal link, an
 *   active admin of the platform.
 * `holderScopes` are the present scopes of the service or integration that holds the token, or that acts with it for
 * another user; null for a person.
 */
function liveBearer(jti: SQL, limits: SessionLimits): SQL {
  return sql`
    select t.jti, t.kind, t.user_id as "userId", t.client_id as "clientId", t.family_id as "familyId",
      t.impersonator_id as "impersonatorId", t.scope, t.pages, t.expires_at as "expiresAt", t.last_used_at as "lastUsedAt",
      ${sessionEnd({ token: sql`t`, signIn: sql`e` }, limits)} as "sessionEndsAt",
      e.method as "signInMethod", e.at as "signedInAt", e.factor_at as "factorAt",
      c.require_second_factor as "requiresFactor", o.first_party as "clientIsFirstParty", o.scopes as "clientScopes",
      u.name as "userName", u.role, u.company_id as "companyId",
      c.type as "companyType", c.partner_id as "companyPartnerId",
      case when u.role = 'location_user'
        then array(select store_id from user_stores where user_id = u.id order by store_id) end as "storeIds",
      case when u.role = 'service' then (select scopes from services where id = u.id)
        else coalesce(u.scopes, i.scopes) end as "holderScopes",
      case when u.role = 'service' then (select partner_ids from services where id = u.id) end as "servicePartnerIds"
    from tokens t
    join users u on u.id = t.user_id
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    left join users i on i.id = t.impersonator_id
    left join authentication_events e on e.id = t.family_id
    left join oauth_clients o on o.client_id = t.client_id
    where t.jti = ${jti} and u.is_active and c.is_active and coalesce(p.is_active, true)
      and (t.impersonator_id is null or (i.is_active and case t.kind
        when 'portal' then i.role = 'super_admin'
        else i.company_id = p.id and i.role in ('partner_owner', 'partner_admin', 'partner_integration') end))`;
}

/** Selects the live tokens among `jtis`, an array of token ids. */
export function liveBearers(jtis: SQL, limits: SessionLimits): SQL {
  return sql`
    select b.* from unnest((select ${jtis}::text[])) as given(jti)
     cross join lateral (${liveBearer(sql`given.jti`, limits)} offset 0) b`;
}

const {
  jti,
  kind,
  userId,
  clientId,
  familyId,
  impersonatorId,
  scope,
  pages,
  expiresAt,
  lastUsedAt,
} = getTableColumns(tokens);

const SESSION_LIMITS = {
  maxHours: nullable(value("integer")),
  idleMinutes: nullable(value("integer")),
};

const BEARER_COLUMNS = {
  jti,
  kind,
  userId,
  clientId,
  familyId,
  impersonatorId,
  scope,
  pages,
  expiresAt,
  lastUsedAt,
  sessionEndsAt: nullable(instant),
  signInMethod: nullable(authenticationEvents.method),
  signedInAt: nullable(authenticationEvents.at),
  factorAt: authenticationEvents.factorAt,
  requiresFactor: companies.requireSecondFactor,
  clientIsFirstParty: nullable(oauthClients.firstParty),
  clientScopes: nullable(oauthClients.scopes),
  userName: users.name,
  role: users.role,
  companyId: users.companyId,
  companyType: companies.type,
  companyPartnerId: companies.partnerId,
  storeIds: nullable(list(userStores.storeId)),
  holderScopes: nullable(services.scopes),
  servicePartnerIds: services.partnerIds,
};

const bearer = statement({
  name: "findBearer",
  // The statement is raw SQL, because it runs with every request: it takes 30 µs of CPU in this form, and 39 µs as a
  // prepared statement of Drizzle's query builder.
  params: { jti, ...SESSION_LIMITS },
  columns: BEARER_COLUMNS,
  text: (given) => liveBearer(given.jti, given),
});

const bearers = statement({
  name: "findBearers",
  // Looks up the tokens of several concurrent requests. A single token is looked up by the statement `findBearer`,
  // which is 25 % faster for one token.
  params: { jtis: list(jti), ...SESSION_LIMITS },
  columns: BEARER_COLUMNS,
  text: ({ jtis, ...limits }) => liveBearers(jtis, limits),
});

/** A live token with all data about its user and company that a request needs; `readToken` interprets it. */
export type BearerRow = ValuesOf<typeof BEARER_COLUMNS>;

/**
 * Looks up tokens by `jti` for the bearer check. The result has no row for a token that was revoked or whose user is
 * inactive. It may have a row for an expired token.
 */
export async function findBearers(
  db: DbOrTx,
  jtis: readonly string[],
  limits: Config["sessionLimits"],
): Promise<ReadonlyMap<string, BearerRow>> {
  const [first, ...others] = jtis;
  if (first === undefined) return new Map();
  const isAlone = others.length === 0;
  const found = await (isAlone
    ? db.run(bearer, { jti: first, ...limits })
    : db.run(bearers, { jtis, ...limits }));
  return new Map(found.map((row) => [row.jti, row]));
}

/** Table alias for the partner of an account. Queries use a left join, because other companies have no partner. */
export const partners = alias(companies, "partners");

export const isPartnerOfCompany = eq(partners.id, companies.partnerId);

/**
 * The columns with the names of a company and of its partner. A query with them must join `partners` by
 * `isPartnerOfCompany`.
 */
export const companyNames = {
  companyName: companies.name,
  companyBrand: companies.brandName,
  partnerName: partners.name,
  partnerBrand: partners.brandName,
};

/**
 * Whether the company and the partner above it are active. If one of them is not, no user of the company can sign in.
 */
export const isTenantActive =
  sql`(${companies.isActive} and coalesce(${partners.isActive}, true))`.mapWith(companies.isActive);

/** Condition that leaves out the users that services and integrations act as (contract 10.7 and 10.10). */
export const isPerson = notInArray(users.role, ["service", "partner_integration"]);

/** Whether a user, the user's company and the partner above it are all active. */
export const isUserActive = sql`(${users.isActive} and ${isTenantActive})`.mapWith(users.isActive);
