import { and, eq, exists, isNull, ne, notExists, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { Db, DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf, anyOfQuery, arrayOf } from "../../../db/conditions.ts";
import { isStoreFailure, isUniqueViolation } from "../../../db/errors.ts";
import { users } from "../../../db/schema/companies.ts";
import { rows as tableOf, statement } from "../../../db/statement.ts";
import { ADDRESS_BYTES, normalEmail, spellingOf } from "../../lib/email.ts";

const { id, email, normalEmail: form, sharesEmail } = users;

/** A table of one row, for a query of values. */
const ONE = sql`(values (1)) as one`;

/** Matches the users of one mailbox: at most one, or several that were there before normal forms were compared. */
export function isMailbox(typed: string): SQL {
  const normal = normalEmail(typed);
  return hasOneOf([spellingOf(typed), normal], [normal]);
}

/**
 * Matches users by their emails or normal forms. Each index is read by a query of its own, because no session combines two
 * of them (`PLANNER`), and a condition with `or` would read all users.
 */
function hasOneOf(emails: readonly string[], forms: readonly string[]): SQL {
  const found = sql`select id from users where ${anyOf(email, emails)}
    union all select id from users where ${anyOf(form, forms)}`;
  return anyOfQuery(id, found);
}

/**
 * Returns the stored spelling of the user whom a typed email means: the user of that spelling, else the only one of the
 * same normal form. Returns the typed spelling if there is no such user, after the same work, so that the time does not
 * reveal whether the email is known (contract 4.7).
 */
export async function resolveEmail(db: Db, typed: string): Promise<string> {
  const spelling = spellingOf(typed);
  // The users are counted, because 0.1.0 stores and changes emails beside this version without marking who shares one.
  const same = db.select({ email }).from(users).where(isMailbox(typed)).limit(2);
  const read = () => db.select({ same: arrayOf(same), open: exists(incomplete(db)) }).from(ONE);
  let [row] = await read();
  if (row?.open === true && (await completeEmails(db)) > 0) [row] = await read();
  const [only, other] = row?.same ?? [];
  return other === undefined ? (only ?? spelling) : spelling;
}

/** Whether a user other than `except` has the mailbox of an email. */
export async function hasEmail(db: DbOrTx, typed: string, except = 0): Promise<boolean> {
  return (await db.$count(users, and(isMailbox(typed), ne(id, except)))) > 0;
}

/** Like `hasEmail`, for the rules of a request. Of two requests at the same time, the unique indexes decide. */
export async function isEmailTaken(db: Db, typed: string, except?: number): Promise<boolean> {
  await completeEmails(db);
  return hasEmail(db, typed, except);
}

/** The most users whose normal forms one transaction computes. */
const BATCH = 200;

/**
 * The most bytes of an email whose normal form is computed: more than any that can be typed (contract 4.6). A longer one,
 * as single sign-on of 0.1.0 stored, may not fit into the index.
 */
const COMPLETED_BYTES = 4 * ADDRESS_BYTES;

/** Users whose email an earlier version wrote, and whose normal form is to be computed (`users_lack_normal_email`). */
const isIncomplete = and(
  isNull(form),
  sql`octet_length(${email}) > char_length(${email})`,
  sql`octet_length(${email}) <= ${COMPLETED_BYTES}::int`,
);
/** Reads one of them, in the order of the partial index, so that it is used while the statistics are old. */
const incomplete = (db: DbOrTx) =>
  db.select({ id }).from(users).where(isIncomplete).orderBy(id).limit(1);

/**
 * Computes normal forms that an earlier version did not store, because PostgreSQL cannot. Returns the number of users that
 * it completed. Users of which another transaction holds a lock are left for the next call.
 */
export async function completeEmails(db: Db): Promise<number> {
  if ((await incomplete(db)).length === 0) return 0;
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
    .limit(BATCH)
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
  // One statement, because a look-up may wait for it.
  text: ({ given }) => sql`
    update users set normal_email = given."normalEmail", shares_email = given."sharesEmail"
      from ${given} where users.id = given.id`,
});

/**
 * Runs one chunk of the maintenance job: completes normal forms, then frees users who share their mailbox with nobody any
 * more.
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
