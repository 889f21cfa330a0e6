import { sql, type SQL } from "drizzle-orm";

/** The limits of a session of the product's own pages (contract 4.24), as integers; a limit that is null is off. */
export interface SessionLimits {
  readonly maxHours: SQL;
  readonly idleMinutes: SQL;
}

/**
 * Computes the instant at which a session of the product's own pages ends by policy. It is null for the token of an OAuth
 * client, for every token outside of a sign-in, and without limits: `least` ignores nulls. The first
 * argument names the rows of the token and of its sign-in.
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
 * - the impersonator is no active admin of the account's partner any more, or, for a portal link, of the platform.
 */
export function liveBearer(jti: SQL, limits: SessionLimits): SQL {
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
      case when u.role = 'service' then (select scopes from services where id = u.id) end as "serviceScopes",
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
        else i.company_id = p.id and i.role in ('partner_owner', 'partner_admin') end))`;
}

/** Selects the live tokens among `jtis`, an array of token ids. */
export function liveBearers(jtis: SQL, limits: SessionLimits): SQL {
  return sql`
    select b.* from unnest((select ${jtis}::text[])) as given(jti)
     cross join lateral (${liveBearer(sql`given.jti`, limits)} offset 0) b`;
}
