import { sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { users } from "../../../db/schema/companies.ts";
import { storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { list, statement, value, type ValuesOf } from "../../../db/statement.ts";

const PERSON_COLUMNS = { id: users.id, name: users.name, companyId: users.companyId };

/** A user who acts, or to whom a review is assigned. */
export type Person = ValuesOf<typeof PERSON_COLUMNS>;

/** Selects a value for each id of a list, with one look-up per id. */
const ofEach = (ids: ReturnType<typeof sql>, look: ReturnType<typeof sql>) => sql`
  unnest((select ${ids}::integer[])) as g(id) cross join lateral (${look} offset 0) l`;

const peopleStatement = statement({
  name: "intake.people",
  // Raw SQL, because one round trip reads the users, and finds the owners by the accounts of reviews and connections.
  params: {
    userIds: list(users.id),
    reviewIds: list(reviews.id),
    siteIds: list(storeReviewSites.id),
  },
  columns: { ...PERSON_COLUMNS, isOwner: value("boolean") },
  text: ({ userIds, reviewIds, siteIds }) => sql`
    select l.id, l.name, l.company_id as "companyId", false as "isOwner"
      from ${ofEach(userIds, sql`select id, name, company_id from users where id = g.id`)}
     union all
    select o.id, o.name, o.company_id, true
      from (select account_id
              from ${ofEach(reviewIds, sql`select account_id from reviews where id = g.id`)}
             union
            select account_id
              from ${ofEach(siteIds, sql`select account_id from store_review_sites where id = g.id`)}) a
      cross join lateral (
           select id, name, company_id from users
            where company_id = a.account_id and role = 'account_owner' and is_active
            order by id limit 1) o`,
});

/** Reads users by their ids, and the first active owner of the account of each review and connection. */
export async function peopleOf(tx: Tx, given: ValuesOf<typeof peopleStatement.params>) {
  const found = await tx.run(peopleStatement, given);
  return {
    users: new Map(found.flatMap((one) => (one.isOwner ? [] : [[one.id, one] as const]))),
    owners: new Map(found.flatMap((one) => (one.isOwner ? [[one.companyId, one] as const] : []))),
  };
}
