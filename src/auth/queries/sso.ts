import type { DbOrTx } from "../../../db/client.ts";

export interface DomainPolicy {
  readonly connectionId: string;
  readonly passwordLogin: boolean;
}

/** How the addresses of a domain sign in; undefined: with a password, like everybody else's. */
export async function findDomainPolicy(
  db: DbOrTx,
  domain: string,
): Promise<DomainPolicy | undefined> {
  const [row] = await db.sql<DomainPolicy[]>`
    select s.id as "connectionId", s.password_login as "passwordLogin"
    from sso_domains d
    join sso_connections s on s.id = d.connection_id
    join companies c on c.id = s.company_id
    left join companies p on p.id = c.partner_id
    where d.domain = ${domain} and s.is_active and c.is_active and coalesce(p.is_active, true)`;
  return row;
}
