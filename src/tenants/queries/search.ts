import { and, desc, eq, ne, or, type SQL, sql } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOfQuery, isAttemptOf, someHas } from "../../../db/conditions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { companies, services, stores, users } from "../../../db/schema/companies.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { isPartnerOfCompany, partners } from "../../auth/access/queries.ts";
import { isRowId, isUlid } from "../../http/ids.ts";
import type { SearchHit } from "../search-model.ts";
import { userBy, usersOf } from "./users.ts";

/** Maximum number of records of each kind that a search returns. */
const FOUND = 5;
/** Number of the newest records of each kind in which a search looks for a part of a text, without an index. */
const READ_FOR_TEXT = 20_000;
const MAX_ID = 2_147_483_647;

/** The text of a search, and the ids that it may be. */
interface Wanted {
  readonly text: string;
  readonly id: number | undefined;
  readonly ulid: string | undefined;
}

type Hit = Pick<SearchHit, "kind" | "id" | "name"> & Partial<SearchHit>;

/** Finds records of all kinds whose ids, names or addresses match the text (contract 10.11). */
export async function searchRecords(db: DbOrTx, q: string): Promise<SearchHit[]> {
  const text = q.trim();
  if (text === "") return [];
  const [id, ulid] = [Number(text), text.toUpperCase()];
  const wanted: Wanted = {
    text,
    id: isRowId(text) && id <= MAX_ID ? id : undefined,
    ulid: isUlid(ulid) ? ulid : undefined,
  };
  const found = await Promise.all([
    companiesLike(db, wanted),
    storesLike(db, wanted),
    usersLike(db, wanted),
    subscriptionsLike(db, wanted),
    eventsWith(db, wanted),
    servicesLike(db, wanted),
    connectionsLike(db, wanted),
    clientsLike(db, wanted),
  ]);
  const none = { detail: null, company: null, partnerId: null, subscriptionId: null };
  return found.flat().map((one) => ({ ...none, ...one }));
}

/** Joins the records with the id to those with the text. Returns at most `FOUND` different ones. */
function distinct<Row extends { readonly id: number | string }>(
  ...lists: readonly (readonly Row[])[]
): Row[] {
  return [...new Map(lists.flat().map((row) => [row.id, row])).values()].slice(0, FOUND);
}

async function companiesLike(db: DbOrTx, { text, id }: Wanted): Promise<Hit[]> {
  const kinds = ["partner", "account"] as const;
  const { type, name, externalId, partnerId, brandName, whiteLabelDomain } = companies;
  const columns = { id: companies.id, type, name, externalId, partnerId };
  const select = () =>
    db
      .select({ ...columns, partner: partners.name })
      .from(companies)
      .leftJoin(partners, isPartnerOfCompany);
  const found = await Promise.all(
    kinds.map(async (kind) => {
      const isKind = eq(type, kind);
      const newest = db
        .select({ id: companies.id, name, brandName, whiteLabelDomain })
        .from(companies)
        .where(isKind)
        .orderBy(desc(companies.id))
        .limit(READ_FOR_TEXT)
        .as("newest");
      const like = db
        .select({ id: newest.id })
        .from(newest)
        .where(someHas([newest.name, newest.brandName, newest.whiteLabelDomain], text))
        .orderBy(desc(newest.id))
        .limit(FOUND);
      return distinct(
        await select().where(and(isKind, isKey(companies, { text, id }))),
        await select().where(anyOfQuery(companies.id, like)).orderBy(desc(companies.id)),
      );
    }),
  );
  return found.flat().flatMap((row) => {
    const kind = kinds.find((one) => one === row.type);
    const partner = kind === "partner" ? row.id : row.partnerId;
    return kind === undefined
      ? []
      : [{ ...named(row), kind, detail: row.externalId, company: row.partner, partnerId: partner }];
  });
}

const named = ({ id, name }: { readonly id: number | string; readonly name: string }) => ({
  id: String(id),
  name,
});

/** Matches the record with this id or external id. */
function isKey(
  table: typeof companies | typeof stores,
  { text, id }: Pick<Wanted, "text" | "id">,
): SQL | undefined {
  return or(id === undefined ? undefined : eq(table.id, id), eq(table.externalId, text));
}

async function storesLike(db: DbOrTx, { text, id }: Wanted): Promise<Hit[]> {
  const { name, externalId, partnerId } = stores;
  const select = () =>
    db
      .select({ id: stores.id, name, detail: externalId, company: companies.name, partnerId })
      .from(stores)
      .innerJoin(companies, eq(companies.id, stores.accountId));
  const newest = db
    .select({ id: stores.id, name })
    .from(stores)
    .orderBy(desc(stores.id))
    .limit(READ_FOR_TEXT)
    .as("newest");
  const like = db
    .select({ id: newest.id })
    .from(newest)
    .where(someHas([newest.name], text))
    .orderBy(desc(newest.id))
    .limit(FOUND);
  const rows = distinct(
    await select().where(isKey(stores, { text, id })),
    await select().where(anyOfQuery(stores.id, like)).orderBy(desc(stores.id)),
  );
  return rows.map((row) => ({ ...row, ...named(row), kind: "store" }));
}

async function usersLike(db: DbOrTx, { text, id }: Wanted): Promise<Hit[]> {
  const page = { limit: FOUND, after: undefined };
  const [byId, byKey, byEmail, byText] = await Promise.all([
    id === undefined ? undefined : userBy(db, { id }),
    userBy(db, { externalId: text }),
    // Finds an address by its index, also one of a user that is older than those of the search by text.
    text.includes("@") ? usersOf(db, { email: text }, page) : { rows: [] },
    usersOf(db, { q: text }, page),
  ]);
  const keyed = [byId, byKey].filter((one) => one !== undefined);
  return distinct(keyed, byEmail.rows, byText.rows).map((row) => ({
    ...named(row),
    kind: "user",
    detail: row.email,
    company: row.company.name,
  }));
}

async function subscriptionsLike(db: DbOrTx, { text, ulid }: Wanted): Promise<Hit[]> {
  const { id, label, webhookUrl, partnerId, state } = webhookSubscriptions;
  const isThere = ne(state, "deleted");
  const newest = db
    .select({ id, name: label, detail: webhookUrl, partnerId })
    .from(webhookSubscriptions)
    .where(and(isThere, ulid === undefined ? undefined : eq(id, ulid)))
    .orderBy(desc(id))
    .limit(READ_FOR_TEXT)
    .as("newest");
  const rows = await db
    .select({
      id: newest.id,
      name: newest.name,
      detail: newest.detail,
      partnerId: newest.partnerId,
      company: companies.name,
    })
    .from(newest)
    .innerJoin(companies, eq(companies.id, newest.partnerId))
    .where(ulid === undefined ? someHas([newest.name, newest.detail], text) : undefined)
    .orderBy(desc(newest.id))
    .limit(FOUND);
  return rows.map((row) => ({ ...row, kind: "subscription" }));
}

/** Finds an event once for each subscription that has attempts or a queued entry of it, or has it in its log. */
async function eventsWith(db: DbOrTx, { ulid }: Wanted): Promise<Hit[]> {
  if (ulid === undefined) return [];
  const { id, number, label, partnerId, state } = webhookSubscriptions;
  const found = union(
    db
      .select({ subscriptionId: outbox.subscriptionId, event: outbox.event })
      .from(outbox)
      .where(eq(outbox.eventId, ulid)),
    db
      .select({ subscriptionId: deliveryAttempts.subscriptionId, event: deliveryAttempts.event })
      .from(deliveryAttempts)
      .where(isAttemptOf(deliveryAttempts.eventId, sql`${ulid}::text`)),
    db
      .select({ subscriptionId: id, event: reviewHistory.event })
      .from(reviewHistory)
      .innerJoin(webhookSubscriptions, eq(number, reviewHistory.subscriptionNumber))
      .where(eq(reviewHistory.eventId, ulid)),
  ).as("found");
  const rows = await db
    .select({
      name: found.event,
      detail: label,
      partnerId,
      company: companies.name,
      subscription: id,
    })
    .from(found)
    .innerJoin(webhookSubscriptions, and(eq(id, found.subscriptionId), ne(state, "deleted")))
    .innerJoin(companies, eq(companies.id, partnerId))
    .orderBy(desc(id))
    .limit(FOUND);
  if (rows.length > 0)
    return rows.map(({ subscription: subscriptionId, ...row }) => ({
      ...row,
      kind: "event",
      id: ulid,
      subscriptionId,
    }));
  const { event: name, partnerId: ofPartner } = reviewHistory;
  const recorded = await db
    .select({ name, partnerId: ofPartner, company: companies.name })
    .from(reviewHistory)
    .innerJoin(companies, eq(companies.id, ofPartner))
    .where(eq(reviewHistory.eventId, ulid));
  return recorded.map((row) => ({ ...row, kind: "event", id: ulid }));
}

async function servicesLike(db: DbOrTx, { text, id }: Wanted): Promise<Hit[]> {
  const rows = await db
    .select({ id: services.id, name: users.name })
    .from(services)
    .innerJoin(users, eq(users.id, services.id))
    .where(and(users.isActive, or(isId(services.id, id), someHas([users.name], text))))
    .orderBy(desc(services.id))
    .limit(FOUND);
  return rows.map((row) => ({ ...named(row), kind: "service" }));
}

const isId = (column: typeof services.id, id: number | undefined) =>
  id === undefined ? undefined : eq(column, id);

async function connectionsLike(db: DbOrTx, { text, ulid }: Wanted): Promise<Hit[]> {
  const { id, issuer, companyId } = ssoConnections;
  const newest = db
    .select({ id, issuer, companyId, domain: ssoDomains.domain })
    .from(ssoConnections)
    .leftJoin(ssoDomains, eq(ssoDomains.connectionId, id))
    .where(ulid === undefined ? undefined : eq(id, ulid))
    .orderBy(desc(id), ssoDomains.domain)
    .limit(READ_FOR_TEXT)
    .as("newest");
  const rows = await db
    .selectDistinctOn([newest.id], {
      id: newest.id,
      domain: newest.domain,
      detail: newest.issuer,
      company: companies.name,
    })
    .from(newest)
    .innerJoin(companies, eq(companies.id, newest.companyId))
    .where(ulid === undefined ? someHas([newest.domain, newest.issuer], text) : undefined)
    .orderBy(desc(newest.id))
    .limit(FOUND);
  return rows.map(({ domain, ...row }) => ({
    ...row,
    kind: "sso_connection",
    name: domain ?? row.detail,
  }));
}

async function clientsLike(db: DbOrTx, { text }: Wanted): Promise<Hit[]> {
  const { clientId: id, name, companyId, createdAt } = oauthClients;
  const newest = db
    .select({ id, name, companyId, createdAt })
    .from(oauthClients)
    .orderBy(desc(createdAt))
    .limit(READ_FOR_TEXT)
    .as("newest");
  const rows = distinct(
    await db
      .select({ id, name, company: companies.name })
      .from(oauthClients)
      .leftJoin(companies, eq(companies.id, companyId))
      .where(eq(id, text)),
    await db
      .select({ id: newest.id, name: newest.name, company: companies.name })
      .from(newest)
      .leftJoin(companies, eq(companies.id, newest.companyId))
      .where(someHas([newest.name], text))
      .orderBy(desc(newest.createdAt))
      .limit(FOUND),
  );
  return rows.map((row) => ({ ...row, kind: "oauth_client", detail: row.id }));
}
