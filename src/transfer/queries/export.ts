// The queries of an export. They read all records of a scope, mostly in chunks in the order of their ids.

import {
  and,
  asc,
  eq,
  getTableColumns,
  gt,
  isNotNull,
  isNull,
  ne,
  or,
  sql,
  type SQL,
} from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { anyOf, arrayOf } from "../../../db/conditions.ts";
import { measuring } from "../../../db/measure.ts";
import {
  companies as companyTable,
  plans,
  stores as storeTable,
  users as userTable,
  userStores,
} from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviewHistory, reviews as reviewTable } from "../../../db/schema/reviews.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import type { RecordedAction, ReviewFacts, SiteFacts } from "../../outbox/event.ts";

const CHUNK_ROWS = 1_000;

/** The scope of an export: one partner or one account; without both ids, the whole platform. */
export interface Scope {
  readonly partnerId?: number;
  readonly accountId?: number;
}

type Column = Parameters<typeof eq>[0];

/**
 * Returns the condition for the records of a scope. `of` contains the columns with the ids of their partner and their
 * account.
 */
function withinScope(scope: Scope, of: { readonly partnerId: Column; readonly accountId: Column }) {
  return and(
    scope.partnerId === undefined ? undefined : eq(of.partnerId, scope.partnerId),
    scope.accountId === undefined ? undefined : eq(of.accountId, scope.accountId),
  );
}

/**
 * Calls `read` with the last id of the previous chunk and yields each chunk, until a chunk has fewer rows than
 * `CHUNK_ROWS`.
 */
async function* chunks<R extends { readonly id: number }>(
  read: (after: number) => PromiseLike<R[]>,
): AsyncGenerator<R[]> {
  for (let after = 0; ;) {
    const rows = await read(after);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < CHUNK_ROWS) return;
    after = last.id;
  }
}

/**
 * Reads rows with large columns in chunks, like `chunks`. A chunk ends before its rows, which `measure` measures, take
 * too much memory.
 */
async function* largeChunks<R extends { readonly id: number }>(
  tx: Tx,
  measure: ReturnType<typeof measuring>,
  {
    ids,
    rows,
  }: {
    readonly ids: (after: number) => PromiseLike<{ readonly id: number }[]>;
    readonly rows: (ids: readonly number[]) => PromiseLike<R[]>;
  },
): AsyncGenerator<R[]> {
  for (let after = 0; ;) {
    const next = (await ids(after)).map(({ id }) => id);
    const some = next.slice(0, (await measure(tx, next)).length);
    yield await rows(some);
    const last = some.at(-1);
    if (last === undefined || (some.length === next.length && next.length < CHUNK_ROWS)) return;
    after = last;
  }
}

export const allPlans = (tx: Tx) => tx.select().from(plans).orderBy(asc(plans.id));
export const allSites = (tx: Tx) => tx.select().from(reviewSites).orderBy(asc(reviewSites.id));

/** Returns the condition for the companies of a scope: a partner with its accounts, or an account with its partner. */
function companiesWithin({ partnerId, accountId }: Scope): SQL | undefined {
  const { id, partnerId: partnerOf } = companyTable;
  if (partnerId !== undefined) return or(eq(id, partnerId), eq(partnerOf, partnerId));
  if (accountId === undefined) return undefined;
  const partner = sql`(select partner_id from companies where id = ${accountId})`;
  return or(eq(id, accountId), eq(id, partner));
}

export const companies = (tx: Tx, type: "partner" | "account", scope: Scope) =>
  chunks((after) =>
    tx
      .select()
      .from(companyTable)
      .where(and(eq(companyTable.type, type), companiesWithin(scope), gt(companyTable.id, after)))
      .orderBy(asc(companyTable.id))
      .limit(CHUNK_ROWS),
  );

export const stores = (tx: Tx, scope: Scope) =>
  chunks((after) =>
    tx
      .select()
      .from(storeTable)
      .where(and(withinScope(scope, storeTable), gt(storeTable.id, after)))
      .orderBy(asc(storeTable.id))
      .limit(CHUNK_ROWS),
  );

export const connections = (tx: Tx, scope: Scope) =>
  chunks((after) =>
    tx
      .select({ ...getTableColumns(storeReviewSites), slug: reviewSites.slug })
      .from(storeReviewSites)
      .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
      .where(and(withinScope(scope, storeReviewSites), gt(storeReviewSites.id, after)))
      .orderBy(asc(storeReviewSites.id))
      .limit(CHUNK_ROWS),
  );

/**
 * Reads the people of partners and accounts. Users of the platform and of its services are not exported, because every
 * installation has its own. Integrations are not, because their tokens are not either.
 */
export const users = (tx: Tx, scope: Scope) => {
  const { accountId } = scope;
  const ownStores = tx
    .select({ id: userStores.storeId })
    .from(userStores)
    .where(eq(userStores.userId, userTable.id))
    .orderBy(asc(userStores.storeId));
  return chunks((after) =>
    tx
      .select({
        ...getTableColumns(userTable),
        companyType: companyTable.type,
        storeIds: arrayOf(ownStores),
      })
      .from(userTable)
      .innerJoin(companyTable, eq(companyTable.id, userTable.companyId))
      .where(
        and(
          ne(companyTable.type, "platform"),
          isNull(userTable.scopes),
          accountId === undefined ? companiesWithin(scope) : eq(userTable.companyId, accountId),
          gt(userTable.id, after),
        ),
      )
      .orderBy(asc(userTable.id))
      .limit(CHUNK_ROWS),
  );
};

/** Returns the condition for records that belong to partners. It matches none in the scope of an account. */
function isOfPartners({ partnerId, accountId }: Scope, owner: Column): SQL | undefined {
  if (accountId !== undefined) return sql`false`;
  return partnerId === undefined ? undefined : eq(owner, partnerId);
}

/**
 * Reads the OAuth clients in the order of their creation, so that each follows the client that created it. In the scope
 * of an account there are none.
 */
export const clients = (tx: Tx, scope: Scope) => {
  const { companyId, createdAt, clientId } = oauthClients;
  const isWithin = isOfPartners(scope, companyId);
  return tx.select().from(oauthClients).where(isWithin).orderBy(asc(createdAt), asc(clientId));
};

/** Reads the subscriptions that are not deleted. In the scope of an account there are none. */
export const subscriptions = (tx: Tx, scope: Scope) => {
  const { id, partnerId: owner, state } = webhookSubscriptions;
  const isWithin = isOfPartners(scope, owner);
  return tx
    .select()
    .from(webhookSubscriptions)
    .where(and(ne(state, "deleted"), isWithin))
    .orderBy(asc(id));
};

const REVIEW_CONDITIONS = {
  all: undefined,
  responded: isNotNull(reviewTable.responseBody),
  flagged: isNotNull(reviewTable.flagStatus),
};

const measureReviews = measuring("export.reviews", {
  id: reviewTable.id,
  bytes: sql`octet_length(concat(${reviewTable.content}, ${reviewTable.responseBody}, ${reviewTable.flagReason}))`,
});

export const reviews = (tx: Tx, scope: Scope, which: keyof typeof REVIEW_CONDITIONS) => {
  const { id } = reviewTable;
  return largeChunks(tx, measureReviews, {
    ids: (after) =>
      tx
        .select({ id })
        .from(reviewTable)
        .where(and(REVIEW_CONDITIONS[which], withinScope(scope, reviewTable), gt(id, after)))
        .orderBy(asc(id))
        .limit(CHUNK_ROWS),
    rows: (ids) => tx.select().from(reviewTable).where(anyOf(id, ids)).orderBy(asc(id)),
  });
};

const measureHistory = measuring("export.history", {
  id: reviewHistory.id,
  bytes: sql`octet_length(concat(${reviewHistory.metadata}, ${reviewHistory.review}))`,
});

interface JsonColumns {
  readonly actor: RecordedAction["actor"];
  readonly review: ReviewFacts | null;
  readonly site: SiteFacts | null;
}

export const history = (tx: Tx, scope: Scope) => {
  const { id } = reviewHistory;
  return largeChunks(tx, measureHistory, {
    ids: (after) =>
      tx
        .select({ id })
        .from(reviewHistory)
        .where(and(withinScope(scope, reviewHistory), gt(id, after)))
        .orderBy(asc(id))
        .limit(CHUNK_ROWS),
    async rows(ids) {
      const rows = await tx.select().from(reviewHistory).where(anyOf(id, ids)).orderBy(asc(id));
      // The cast is safe: the JSON columns have no static type, but every event is recorded with values of the types in
      // `JsonColumns`.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return rows as (Omit<(typeof rows)[number], keyof JsonColumns> & JsonColumns)[];
    },
  });
};
