// Bulk reads and inserts of an import. Reads take their lists as array parameters, so that a statement can have any
// number of keys.

import { and, eq, getTableColumns, getTableName, ne, sql, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { lockTable } from "../../../db/locks.ts";
import { anyOf } from "../../../db/conditions.ts";
import {
  companies,
  imports,
  plans,
  stores,
  users,
  userStores,
} from "../../../db/schema/companies.ts";
import { outboxOffsets, outboxSequences } from "../../../db/schema/outbox.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { rows as tableOf, statement } from "../../../db/statement.ts";
import { normalEmail } from "../../lib/email.ts";

/** References to records of one kind: ids as numbers, or external ids as texts. */
export type Keys = Iterable<number | string | undefined>;

/**
 * Returns one condition for the ids and one for the external ids among `keys`. They are run as separate queries
 * (`findAll`), so that each uses the index of its column.
 */
function keyConditions(id: PgColumn, externalId: PgColumn, keys: Keys): SQL[] {
  const given = [...new Set(keys)];
  const ids = given.filter((key) => typeof key === "number");
  const texts = given.filter((key) => typeof key === "string");
  return [...among(id, ids), ...among(externalId, texts)];
}

const among = (column: PgColumn, values: readonly (number | string)[]): SQL[] =>
  values.length === 0 ? [] : [anyOf(column, values)];

/** Runs a query for each condition. A record that matches several conditions is returned several times. */
async function findAll<R>(
  where: readonly SQL[],
  read: (where: SQL) => PromiseLike<R[]>,
): Promise<R[]> {
  const rows: R[] = [];
  for (const one of where) rows.push(...(await read(one)));
  return rows;
}

export const plansBy = (tx: DbOrTx, keys: Keys) =>
  findAll(keyConditions(plans.id, plans.name, keys), (where) =>
    tx.select({ id: plans.id, externalId: plans.name, name: plans.name }).from(plans).where(where),
  );

export const companiesBy = (tx: DbOrTx, type: "partner" | "account", keys: Keys) =>
  findAll(keyConditions(companies.id, companies.externalId, keys), (where) =>
    tx
      .select(getTableColumns(companies))
      .from(companies)
      .where(and(eq(companies.type, type), where)),
  );

/** Reads the id, the type and the name of companies of any type. */
export const namedCompanies = (tx: DbOrTx, ids: readonly number[]) =>
  tx
    .select({ id: companies.id, noun: companies.type, name: companies.name })
    .from(companies)
    .where(anyOf(companies.id, ids));

/** Returns the id of the platform's company. */
export async function platformId(tx: DbOrTx): Promise<number | undefined> {
  const [row] = await tx
    .select({ id: companies.id })
    .from(companies)
    .where(eq(companies.type, "platform"));
  return row?.id;
}

/** Returns those of these white-label domains that a partner already has. */
export const domainsTaken = (tx: DbOrTx, domains: readonly string[]) =>
  tx
    .select({ domain: companies.whiteLabelDomain })
    .from(companies)
    .where(anyOf(companies.whiteLabelDomain, domains));

export const storesBy = (tx: DbOrTx, keys: Keys) =>
  findAll(keyConditions(stores.id, stores.externalId, keys), (where) =>
    tx.select(getTableColumns(stores)).from(stores).where(where),
  );

export function usersBy(tx: DbOrTx, keys: Keys, emails: readonly string[] = []) {
  const forms = emails.map(normalEmail);
  const mailboxes = [
    ...among(users.email, [...emails, ...forms]),
    ...among(users.normalEmail, forms),
  ];
  return findAll([...keyConditions(users.id, users.externalId, keys), ...mailboxes], (where) =>
    tx
      .select({
        id: users.id,
        externalId: users.externalId,
        email: users.email,
        name: users.name,
        role: users.role,
        companyId: users.companyId,
      })
      .from(users)
      .where(where),
  );
}

export const sitesBy = (tx: DbOrTx, keys: Keys) =>
  findAll(keyConditions(reviewSites.id, reviewSites.slug, keys), (where) =>
    tx
      .select({ id: reviewSites.id, slug: reviewSites.slug, name: reviewSites.name })
      .from(reviewSites)
      .where(where),
  );

/**
 * Reads connections with their review sites, by their keys or by their stores. The transaction may then write reviews
 * and events of these connections. So a deletion of an account or of a connection waits until the transaction has ended
 * (`presentWriters`).
 */
export async function connectionsBy(tx: DbOrTx, keys: Keys, storeIds: readonly number[] = []) {
  const { id } = storeReviewSites;
  // Locks the table before the reads, without locks on rows. Row locks would block changes of the connections, and an
  // import may take long.
  await tx
    .select({ id })
    .from(storeReviewSites)
    .where(sql`false`)
    .for("key share");
  return findAll(
    [
      ...keyConditions(id, storeReviewSites.externalId, keys),
      ...among(storeReviewSites.storeId, storeIds),
    ],
    (where) =>
      tx
        .select({
          ...getTableColumns(storeReviewSites),
          slug: reviewSites.slug,
          name: reviewSites.name,
        })
        .from(storeReviewSites)
        .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
        .where(where),
  );
}
export type Connection = Awaited<ReturnType<typeof connectionsBy>>[number];

const selectReviews = (tx: DbOrTx, where: SQL) =>
  tx.select(getTableColumns(reviews)).from(reviews).where(where);

/** Reads reviews by their keys. */
export const reviewsBy = (tx: DbOrTx, keys: Keys) =>
  findAll(keyConditions(reviews.id, reviews.externalId, keys), (where) => selectReviews(tx, where));

/**
 * Reads reviews by their keys, and locks them until the commit. The lock is needed, because `updateReviews` writes all
 * columns. Without it, the update would undo a report or an erasure that was committed after the read.
 */
export const lockReviewsBy = (tx: Tx, keys: Keys) =>
  findAll(keyConditions(reviews.id, reviews.externalId, keys), (where) =>
    selectReviews(tx, where).orderBy(reviews.id).for("no key update"),
  );
export type ReviewRow = typeof reviews.$inferSelect;

/** Reads reviews by their connections and the ids that they have at the review sites. */
export const reviewsAtSites = (
  tx: DbOrTx,
  places: readonly { readonly storeReviewSiteId: number; readonly externalReviewId: string }[],
) => tx.run(reviewsByPlace, { places });

const reviewsByPlace = statement({
  name: "transfer.reviewsAtSites",
  // Raw SQL, because the reviews are found by pairs of values. `offset 0` makes PostgreSQL search the index once for
  // each pair.
  params: {
    places: tableOf({
      storeReviewSiteId: reviews.storeReviewSiteId,
      externalReviewId: reviews.externalReviewId,
    }),
  },
  columns: {
    id: reviews.id,
    externalId: reviews.externalId,
    storeReviewSiteId: reviews.storeReviewSiteId,
    externalReviewId: reviews.externalReviewId,
  },
  text: ({ places }) => sql`
    select r.id, r.external_id as "externalId", r.store_review_site_id as "storeReviewSiteId",
           r.external_review_id as "externalReviewId"
      from ${places} cross join lateral (
             select id, external_id, store_review_site_id, external_review_id from reviews
              where store_review_site_id = places."storeReviewSiteId"
                and external_review_id = places."externalReviewId" offset 0) r`,
});

export const clientsBy = (tx: DbOrTx, ids: readonly string[]) =>
  tx
    .select({ clientId: oauthClients.clientId, companyId: oauthClients.companyId })
    .from(oauthClients)
    .where(anyOf(oauthClients.clientId, ids));

/** Reads the subscriptions of these partners that are not deleted, and those with one of these ids, deleted or not. */
export const subscriptionsBy = (
  tx: DbOrTx,
  ids: readonly string[],
  partnerIds: readonly number[],
) => {
  const { id, partnerId, deliveryKind, state } = webhookSubscriptions;
  const ofPartners = among(partnerId, partnerIds).map(
    (one) => sql`${one} and ${ne(state, "deleted")}`,
  );
  return findAll([...among(id, ids), ...ofPartners], (where) =>
    tx.select({ id, partnerId, deliveryKind }).from(webhookSubscriptions).where(where),
  );
};

export const eventIdsTaken = (tx: DbOrTx, eventIds: readonly string[]) =>
  tx
    .select({ eventId: reviewHistory.eventId })
    .from(reviewHistory)
    .where(anyOf(reviewHistory.eventId, eventIds));

// ------------------------------------------------------------------------------------------------ inserts

/** Returns a function that inserts many rows into the table. A row without an id gets one from PostgreSQL. */
function inserter<T extends PgTable>(table: T) {
  return async (tx: Tx, values: readonly T["$inferInsert"][]): Promise<void> => {
    if (values.length > 0)
      await tx
        .insert(table)
        .overridingSystemValue()
        .values([...values]);
  };
}

export const insertPlans = inserter(plans);
export const insertCompanies = inserter(companies);
export const insertStores = inserter(stores);
export const insertSites = inserter(reviewSites);
export const insertConnections = inserter(storeReviewSites);
export const insertClients = inserter(oauthClients);
export const insertReviews = inserter(reviews);
export const insertHistory = inserter(reviewHistory);

type NewUser = typeof users.$inferInsert & { readonly storeIds: readonly number[] };

export async function insertUsers(tx: Tx, values: readonly NewUser[]): Promise<void> {
  if (values.length === 0) return;
  const made = await tx
    .insert(users)
    .overridingSystemValue()
    .values(
      values.map(({ storeIds: _stores, ...user }) => ({
        ...user,
        normalEmail: normalEmail(user.email),
      })),
    )
    .returning({ id: users.id, email: users.email });
  const ids = new Map(made.map(({ id, email }) => [email, id]));
  const links = values.flatMap(({ email, storeIds }) => {
    const userId = ids.get(email);
    return userId === undefined ? [] : storeIds.map((storeId) => ({ userId, storeId }));
  });
  if (links.length > 0) await tx.insert(userStores).values(links);
}

/**
 * Inserts subscriptions, each with its rows in `outbox_sequences` and `outbox_offsets`, as `insertSubscription` of the
 * webhooks does.
 */
export async function insertSubscriptions(
  tx: Tx,
  values: readonly (typeof webhookSubscriptions.$inferInsert)[],
): Promise<void> {
  if (values.length === 0) return;
  const owners = values.map(({ id: subscriptionId }) => ({ subscriptionId }));
  await tx.insert(webhookSubscriptions).values([...values]);
  await tx.insert(outboxSequences).values(owners);
  await tx.insert(outboxOffsets).values(owners);
}

/** The tables for whose rows a line may give the id, by the kind of line. */
const NUMBERED_TABLES = {
  plan: plans,
  partner: companies,
  account: companies,
  store: stores,
  review_site: reviewSites,
  connection: storeReviewSites,
  user: users,
  review: reviews,
} as const satisfies Record<string, PgTable>;

/**
 * Moves the id sequence of a table to an id, so that PostgreSQL assigns higher ids. A lock blocks inserts during the
 * move, because an insert could otherwise get an id that the sequence returns again after the move. Throws an error if
 * other transactions keep the table locked during all tries.
 */
export async function moveSequence(
  db: { transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> },
  kind: string,
  past: number,
): Promise<void> {
  if (!isNumbered(kind)) return;
  const table = NUMBERED_TABLES[kind];
  await db.transaction(async (tx) => {
    const sequence = sql`pg_get_serial_sequence(${getTableName(table)}, 'id')::regclass`;
    const isBehind = sql`coalesce(pg_sequence_last_value(${sequence}), 0) < ${past}::bigint`;
    const rows = await tx.execute(sql`select where ${isBehind}`);
    if (rows.length === 0) return;
    await lockTable(tx, table, "share row exclusive");
    await tx.execute(sql`select setval(${sequence}, ${past}::bigint) where ${isBehind}`);
  });
}

const isNumbered = (kind: string): kind is keyof typeof NUMBERED_TABLES =>
  Object.hasOwn(NUMBERED_TABLES, kind);

// ------------------------------------------------------------------------------------------------ progress

export type Progress = typeof imports.$inferSelect;

export async function findProgress(db: DbOrTx, file: string): Promise<Progress | undefined> {
  const [row] = await db.select().from(imports).where(eq(imports.file, file));
  return row;
}

export async function saveProgress(tx: DbOrTx, progress: Progress): Promise<void> {
  const { file: _file, ...set } = progress;
  await tx.insert(imports).values(progress).onConflictDoUpdate({ target: imports.file, set });
}
