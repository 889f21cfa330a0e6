import { and, eq, exists, isNull, ne, notExists, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { Db, DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf, anyOfQuery, arrayOf } from "../../../db/conditions.ts";
import { isStoreFailure, isUniqueViolation } from "../../../db/errors.ts";
import { users } from "../../../db/schema/companies.ts";
import { rows as tableOf, statement } from "../../../db/statement.ts";
import { ADDRESS_BYTES, normalEmail, spellingOf } from "../../lib/email.ts";

const { id, email, normalEmail: form, sharesEmail } = users;

/** A one-row table, to select expressions that belong to no table. */
const ONE_ROW = sql`(values (1)) as one`;

/**
 * Matches the users of one mailbox. There is at most one, except for users that earlier versions stored before they
 * compared normal forms.
 */
export function isMailbox(typed: string): SQL {
  const normal = normalEmail(typed);
  return hasOneOf([spellingOf(typed), normal], [normal]);
}

/**
 * Matches users by their emails or by their normal forms. A separate subquery reads each index, because database
 * sessions run without bitmap scans (`PLANNER` in db/session-settings.ts); an `or` condition would read all users.
 */
function hasOneOf(emails: readonly string[], forms: readonly string[]): SQL {
  const found = sql`select id from users where ${anyOf(email, emails)}
    union all select id from users where ${anyOf(form, forms)}`;
  return anyOfQuery(id, found);
}

/**
 * Returns the stored spelling of a typed email. It is the email of the user with exactly this spelling, else of the
 * only user with the same normal form. If there is no such user, the function does the same work and returns the typed
 * spelling, so that the response time does not reveal whether the email is known (contract 4.7).
 */
export async function resolveEmail(db: Db, typed: string): Promise<string> {
  const spelling = spellingOf(typed);
  // Users are counted instead of reading `shares_email`, because a process of version 0.1.0 may store emails at the
  // same time, and does not set that column.
  const same = db.select({ email }).from(users).where(isMailbox(typed)).limit(2);
  const read = () =>
    db.select({ same: arrayOf(same), open: exists(selectIncomplete(db)) }).from(ONE_ROW);
  let [row] = await read();
  if (row?.open === true && (await completeEmails(db)) > 0) [row] = await read();
  const [only, other] = row?.same ?? [];
  return other === undefined ? (only ?? spelling) : spelling;
}

/** Returns whether a user other than `except` has the mailbox of this email. */
export async function hasEmail(db: DbOrTx, typed: string, except = 0): Promise<boolean> {
  return (await db.$count(users, and(isMailbox(typed), ne(id, except)))) > 0;
}

/**
 * Like `hasEmail`, for the validation of a request. If two requests store the same email at the same time, the unique
 * indexes reject the second one.
 */
export async function isEmailTaken(db: Db, typed: string, except?: number): Promise<boolean> {
  await completeEmails(db);
  return hasEmail(db, typed, except);
}

/** Maximum number of users whose normal forms one transaction computes. */
const COMPLETED_AT_ONCE = 200;

/**
 * Maximum length in bytes of an email whose normal form is computed. Every email that can be typed is shorter (contract
 * 4.6). A longer one, which single sign-on of version 0.1.0 could store, may not fit into the index.
 */
const COMPLETED_BYTES = 4 * ADDRESS_BYTES;

/** Matches users whose email an earlier version stored without its normal form (index `users_lack_normal_email`). */
const isIncomplete = and(
  isNull(form),
  sql`octet_length(${email}) > char_length(${email})`,
  sql`octet_length(${email}) <= ${COMPLETED_BYTES}::int`,
);
/**
 * Selects one user whose email lacks its normal form. The order is that of the partial index, so that PostgreSQL uses
 * this index even while its statistics are outdated.
 */
const selectIncomplete = (db: DbOrTx) =>
  db.select({ id }).from(users).where(isIncomplete).orderBy(id).limit(1);

/**
 * Computes the normal forms that an earlier version did not store; PostgreSQL itself cannot compute them. Returns the
 * number of users that it completed. Users whose rows another transaction has locked are left for the next call.
 */
export async function completeEmails(db: Db): Promise<number> {
  if ((await selectIncomplete(db)).length === 0) return 0;
  try {
    return await db.transaction(completeBatch);
  } catch (error) {
    if (isUniqueViolation(error) || isStoreFailure(error)) return 0;
    throw error;
  }
}

async function completeBatch(tx: Tx): Promise<number> {
  const rows = await tx
    .select({ id, email })
    .from(users)
    .where(isIncomplete)
    .orderBy(id)
    .limit(COMPLETED_AT_ONCE)
    .for("no key update", { skipLocked: true });
  const forms = rows.map((row) => normalEmail(row.email));
  const others = await tx
    .select({ id, normal: sql`coalesce(${form}, ${email})`.mapWith(email) })
    .from(users)
    .where(hasOneOf(forms, forms))
    .orderBy(id)
    .for("no key update", { noWait: true });
  const all = [...forms, ...others.map(({ normal }) => normal)];
  const shared = [...Map.groupBy(all, (one) => one)].flatMap(([one, same]) =>
    same.length > 1 ? [one] : [],
  );
  const done = [
    ...rows.map((row, i) => ({ id: row.id, normal: forms[i] ?? "" })),
    ...others.filter(({ normal }) => shared.includes(normal)),
  ];
  await tx.run(storeForms, {
    given: done.map((one) => ({
      id: one.id,
      normalEmail: one.normal,
      sharesEmail: shared.includes(one.normal),
    })),
  });
  return rows.length;
}

const storeForms = statement({
  name: "auth.storeForms",
  params: { given: tableOf({ id, normalEmail: form, sharesEmail }) },
  // One statement updates all rows, because a look-up of `resolveEmail` may be waiting for it.
  text: ({ given }) => sql`
    update users set normal_email = given."normalEmail", shares_email = given."sharesEmail"
      from ${given} where users.id = given.id`,
});

/**
 * Runs one chunk of the maintenance job. It completes normal forms first; when none are left, it clears `shares_email`
 * of users who no longer share their mailbox with another user.
 */
export async function emailsChunk(db: Db): Promise<{ readonly rows: number; readonly next?: "" }> {
  const rows = await completeEmails(db);
  if (rows > 0) return { rows, next: "" };
  const other = alias(users, "other");
  const isOther = and(eq(other.normalEmail, form), ne(other.id, id));
  const others = db.select({ id: other.id }).from(other).where(isOther);
  const freed = await db
    .update(users)
    .set({ sharesEmail: false })
    .where(and(sharesEmail, notExists(others)));
  return { rows: freed.count };
}
