import type { DbOrTx, Tx } from "../../../db/client.ts";

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

/** One-time codes of single sign-on that wait for their exchange. */
export async function consumeSsoCodesOf(tx: Tx, userId: number, now: Date): Promise<void> {
  await tx.sql`
    update sso_codes set consumed_at = ${now} where user_id = ${userId} and consumed_at is null`;
}
