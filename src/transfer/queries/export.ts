// Reads of an export: all records of a scope in the order of their ids, chunk by chunk.

import { and, asc, eq, getTableColumns, gt, isNotNull, ne, or, sql, type SQL } from "drizzle-orm";

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

/** The records of one partner or of one account; without both, all records. */
export interface Scope {
  readonly partnerId?: number;
  readonly accountId?: number;
}

type Column = Parameters<typeof eq>[0];

/** Matches the records of the scope, by the columns that name their partner and their account. */
function within(scope: Scope, of: { readonly partnerId: Column; readonly accountId: Column }) {
  return and(
    scope.partnerId === undefined ? undefined : eq(of.partnerId, scope.partnerId),
    scope.accountId === undefined ? undefined : eq(of.accountId, scope.accountId),
  );
}

/** Reads chunks in the order of their ids, until one is not full. */
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

/** Reads chunks like `chunks`, of rows with large columns: a chunk ends before its rows take too much memory. */
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

/** Matches the companies of a scope: a partner with its accounts, or an account with its partner. */
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
      .where(and(within(scope, storeTable), gt(storeTable.id, after)))
      .orderBy(asc(storeTable.id))
      .limit(CHUNK_ROWS),
  );

export const connections = (tx: Tx, scope: Scope) =>
  chunks((after) =>
    tx
      .select({ ...getTableColumns(storeReviewSites), slug: reviewSites.slug })
      .from(storeReviewSites)
      .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
      .where(and(within(scope, storeReviewSites), gt(storeReviewSites.id, after)))
      .orderBy(asc(storeReviewSites.id))
      .limit(CHUNK_ROWS),
  );

/** Reads the users of partners and accounts; those of the platform and its services stay with each installation. */
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
          accountId === undefined ? companiesWithin(scope) : eq(userTable.companyId, accountId),
          gt(userTable.id, after),
        ),
      )
      .orderBy(asc(userTable.id))
      .limit(CHUNK_ROWS),
  );
};

/** Matches records that belong to partners and not to accounts. */
function partnersOnly({ partnerId, accountId }: Scope, owner: Column): SQL | undefined {
  if (accountId !== undefined) return sql`false`;
  return partnerId === undefined ? undefined : eq(owner, partnerId);
}

/** Reads the OAuth clients, each after the one that created it. An account has none. */
export const clients = (tx: Tx, scope: Scope) => {
  const { companyId, createdAt, clientId } = oauthClients;
  const isWithin = partnersOnly(scope, companyId);
  return tx.select().from(oauthClients).where(isWithin).orderBy(asc(createdAt), asc(clientId));
};

/** Reads the subscriptions that are not deleted. An account has none. */
export const subscriptions = (tx: Tx, scope: Scope) => {
  const { id, partnerId: owner, state } = webhookSubscriptions;
  const isWithin = partnersOnly(scope, owner);
  return tx
    .select()
    .from(webhookSubscriptions)
    .where(and(ne(state, "deleted"), isWithin))
    .orderBy(asc(id));
};

const WHICH = {
  all: undefined,
  responded: isNotNull(reviewTable.responseBody),
  flagged: isNotNull(reviewTable.flagStatus),
};

const measureReviews = measuring("export.reviews", {
  id: reviewTable.id,
  bytes: sql`octet_length(concat(${reviewTable.content}, ${reviewTable.responseBody}, ${reviewTable.flagReason}))`,
});

export const reviews = (tx: Tx, scope: Scope, which: keyof typeof WHICH) => {
  const { id } = reviewTable;
  return largeChunks(tx, measureReviews, {
    ids: (after) =>
      tx
        .select({ id })
        .from(reviewTable)
        .where(and(WHICH[which], within(scope, reviewTable), gt(id, after)))
        .orderBy(asc(id))
        .limit(CHUNK_ROWS),
    rows: (ids) => tx.select().from(reviewTable).where(anyOf(id, ids)).orderBy(asc(id)),
  });
};

const measureHistory = measuring("export.history", {
  id: reviewHistory.id,
  bytes: sql`octet_length(concat(${reviewHistory.metadata}, ${reviewHistory.review}))`,
});

interface Bodies {
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
        .where(and(within(scope, reviewHistory), gt(id, after)))
        .orderBy(asc(id))
        .limit(CHUNK_ROWS),
    async rows(ids) {
      const rows = await tx.select().from(reviewHistory).where(anyOf(id, ids)).orderBy(asc(id));
      // The columns have no static type; every event is recorded with values of these shapes.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return rows as (Omit<(typeof rows)[number], keyof Bodies> & Bodies)[];
    },
  });
};
