import type { Tx } from "../../db/client.ts";
import type { Owner, Subject } from "./model.ts";

/** Partners whose active immediate subscription has our own mails suppressed (interface.md 6.4, rule 4). */
export async function suppressingPartners(
  tx: Tx,
  partnerIds: readonly number[],
): Promise<Set<number>> {
  const rows = await tx.sql<{ partnerId: number }[]>`
    select partner_id as "partnerId" from webhook_subscriptions
     where partner_id = any(${[...partnerIds]}::int[]) and delivery_kind = 'immediate'
       and state = 'active' and suppress_native_notifications`;
  return new Set(rows.map(({ partnerId }) => partnerId));
}

export async function subjectsOf(tx: Tx, reviewIds: readonly number[]): Promise<Subject[]> {
  return tx.sql<Subject[]>`
    select r.id as "reviewId", s.name as "storeName", a.name as "accountName", w.name as "siteName", r.rate,
           r.reviewer, r.response_body as "responseBody",
           case when p.white_label_enabled then p.brand_name end as brand, p.primary_color as "primaryColor"
      from reviews r
      join stores s on s.id = r.store_id
      join companies a on a.id = r.account_id
      join companies p on p.id = r.partner_id
      join store_review_sites l on l.id = r.store_review_site_id
      join review_sites w on w.id = l.review_site_id
     where r.id = any(${[...reviewIds]}::int[])`;
}

/** The first active owner, whom impersonation acts for too; undefined if the account has none. */
export async function ownerOf(tx: Tx, accountId: number): Promise<Owner | undefined> {
  const [row] = await tx.sql<Owner[]>`
    select email, name from users
     where company_id = ${accountId} and role = 'account_owner' and is_active
     order by id limit 1`;
  return row;
}
