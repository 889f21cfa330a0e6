// An import stores each field of a line in its column, and an export leaves out no column (contract 10.9).
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { getTableName } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";

import type { RawDb } from "../../../db/client.ts";
import { companies, plans, stores, users } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { providerSecretContext } from "../../../src/intake/provider-model.ts";
import { isoInstant, systemClock } from "../../../src/lib/clock.ts";
import { type Fields, fieldsOf } from "../../../src/lib/fields.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../../src/master-key.ts";
import { ownHeadersAssociatedData } from "../../../src/outbox/own-headers.ts";
import { exportRecords } from "../../../src/transfer/export.ts";
import { LINES } from "../../../src/transfer/format.ts";
import { importFile } from "../../../src/transfer/import.ts";
import { testConfig } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import type { Line } from "../../support/platform-lines.ts";
import { createDatabase } from "../../support/postgres.ts";
import { rowCounts } from "../../support/texts.ts";

test("each table is exported, or named as one that stays behind", async () => {
  const exported = Object.values(TABLES).map((table) => getTableName(table));
  const all = Object.keys(await rowCounts(first.db));
  expect([...exported, "user_stores", ...LEFT_OUT].toSorted()).toEqual(all.toSorted());
});

test("each field of a line belongs to a column, and is tested with two values", () => {
  const stored = Object.values(COLUMNS).flatMap((columns) => Object.values(columns).flatMap(named));
  const all = Object.entries(LINES).flatMap(([kind, { properties }]) =>
    Object.keys(properties).map((field) => `${kind}.${field}`),
  );
  expect([...new Set([...stored, ...Object.keys(WITHOUT_COLUMN)])].toSorted()).toEqual(
    all.toSorted(),
  );
  const constant = stored.filter((one) => {
    const [kind, field = ""] = one.split(".");
    const values = GIVEN.filter((line) => line.kind === kind).map((line) => line[field]);
    return new Set(values.map((value) => JSON.stringify(value))).size < 2;
  });
  expect(constant).toEqual([]);
});

test("an import stores each field, and the import of an export has the same columns", async () => {
  await importInto(first.db, FILE);
  const rows = await rowsOf(first.db);
  const wrong: unknown[] = [];
  for (const [table, columns] of Object.entries(COLUMNS))
    for (const [column, text] of Object.entries(columns))
      for (const one of named(text)) {
        const [kind, field = ""] = one.split(".");
        for (const line of GIVEN.filter((some) => some.kind === kind)) {
          const row = rows[table]?.find((some) => isRowOf(some, line)) ?? {};
          const [value, wanted] = [valueOf(row, column, one), line[field] ?? null];
          if (!Bun.deepEquals(value, wanted)) wrong.push({ one, value, wanted });
        }
      }
  expect(wrong).toEqual([]);

  const lines: Line[] = [];
  await exportRecords({ db: first.db, box, clock: systemClock }, {}, async (some) => {
    lines.push(...some);
  });
  const exported = join(folder.path, "exported.ndjson");
  await Bun.write(exported, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await importInto(second.db, exported);
  const again = await rowsOf(second.db);
  for (const name of Object.keys(TABLES))
    expect([name, keptOf(name, again)]).toEqual([name, keptOf(name, rows)]);
});

const TABLES = {
  plans,
  companies,
  stores,
  reviewSites,
  storeReviewSites,
  users,
  oauthClients,
  webhookSubscriptions,
  reviews,
  reviewHistory,
} as const;

const ASSIGNED = "is assigned by the import";
const AT_IMPORT = "is the time of the import";
const STARTS_ANEW = "starts anew";

/**
 * The fields of lines that each column contains, or the reason why no line has it. A new column does not compile here
 * until its author has decided which of the two it is.
 */
const COLUMNS: {
  readonly [N in keyof typeof TABLES]: Readonly<
    Record<keyof (typeof TABLES)[N]["$inferSelect"], string>
  >;
} = {
  plans: { id: "plan.id", name: "plan.name", features: "plan.features" },
  companies: {
    id: "partner.id account.id",
    type: "follows from the kind of the line",
    name: "partner.name account.name",
    partnerId: "account.partner_id",
    planId: "account.plan_id",
    isActive: "partner.is_active account.is_active",
    primaryColor: "partner.primary_color account.primary_color",
    logoUrl: "partner.logo_url account.logo_url",
    whiteLabelEnabled: "partner.white_label",
    brandName: "partner.white_label",
    whiteLabelDomain: "partner.white_label",
    requireSecondFactor: "second factors are not exported",
    externalId: "partner.external_id account.external_id",
    createdAt: "partner.created_at account.created_at",
    updatedAt: AT_IMPORT,
  },
  stores: {
    id: "store.id",
    accountId: "store.account_id",
    partnerId: "follows from the account",
    name: "store.name",
    externalId: "store.external_id",
    updatedAt: AT_IMPORT,
  },
  reviewSites: {
    id: "review_site.id",
    slug: "review_site.slug",
    name: "review_site.name",
    sealedSecret: "review_site.secret",
    sealedPreviousSecret: "only the current secret is exported",
    previousSecretExpiresAt: "only the current secret is exported",
    requiresTimestamp: "is a setting of each installation",
  },
  storeReviewSites: {
    id: "connection.id",
    storeId: "connection.store_id",
    reviewSiteId: "connection.review_site",
    accountId: "follows from the store",
    partnerId: "follows from the store",
    pullConnected: "connection.pull",
    pullErrorCode: "connection.pull",
    postConnected: "connection.post",
    postErrorCode: "connection.post",
    externalId: "connection.external_id",
    updatedAt: AT_IMPORT,
  },
  users: {
    id: "user.id",
    companyId: "user.partner_id user.account_id user.store_ids",
    email: "user.email",
    normalEmail: "follows from the email",
    sharesEmail: "follows from the email",
    name: "user.name",
    role: "user.role",
    scopes: "integrations are not exported",
    passwordHash: "user.password_hash",
    isActive: "user.is_active",
    externalId: "user.external_id",
    createdAt: "user.created_at",
    updatedAt: AT_IMPORT,
  },
  oauthClients: {
    clientId: "oauth_client.client_id",
    companyId: "oauth_client.partner_id",
    name: "oauth_client.name",
    secretHash: "oauth_client.secret_hash",
    confidential: "follows from the secret",
    firstParty: "oauth_client.first_party",
    redirectUris: "oauth_client.redirect_uris",
    scopes: "oauth_client.scopes",
    grantTypes: "oauth_client.grant_types",
    requirePkce: "oauth_client.require_pkce",
    createdBy: "oauth_client.created_by",
    createdAt: "oauth_client.created_at",
    updatedAt: AT_IMPORT,
  },
  webhookSubscriptions: {
    id: "subscription.id",
    number: ASSIGNED,
    partnerId: "subscription.partner_id",
    shard: ASSIGNED,
    label: "subscription.label",
    webhookUrl: "subscription.webhook_url",
    deliveryKind: "subscription.delivery_kind",
    batchIntervalHours: "subscription.batch_interval_hours",
    events: "subscription.events",
    payloadMode: "subscription.payload_mode",
    suppressNativeNotifications: "subscription.suppress_native_notifications",
    ordering: "subscription.ordering",
    standardWebhooks: "subscription.standard_webhooks",
    sequenceHeaders: "subscription.sequence_headers",
    state: "subscription.is_active",
    consecutiveFailureCount: STARTS_ANEW,
    sealedSecret: "subscription.secret",
    secretFingerprint: "follows from the secret",
    sealedPreviousSecret: "subscription.previous_secret",
    previousSecretExpiresAt: "subscription.previous_secret_expires_at",
    headerNames: "follows from the headers",
    sealedHeaders: "subscription.headers",
    lastBatchDispatchedAt: STARTS_ANEW,
    nextBatchAt: STARTS_ANEW,
    beginsAt: "subscription.begins_at",
    createdAt: "subscription.created_at",
    updatedAt: AT_IMPORT,
    disabledAt: "subscription.disabled_at",
    disabledReason: "subscription.disabled_reason",
    disabledNote: "subscription.disabled_note",
    pendingTestEventId: STARTS_ANEW,
    deletedAt: "deleted subscriptions are not exported",
  },
  reviews: {
    id: "review.id",
    partnerId: "follows from the connection",
    accountId: "follows from the connection",
    storeId: "follows from the connection",
    storeReviewSiteId: "review.connection_id",
    externalReviewId: "review.external_review_id",
    rate: "review.rate",
    reviewer: "review.reviewer",
    reviewerEmail: "review.reviewer_email",
    content: "review.content",
    profanity: "follows from the content",
    reviewedAt: "review.reviewed_at",
    createdAt: "review.created_at",
    updatedAt: "review.updated_at",
    removedAt: "review.removed_at",
    responseBody: "response.body response.review_id",
    responseUserId: "response.user_id",
    respondedAt: "response.responded_at",
    flagStatus: "flag.status flag.review_id",
    flagReason: "flag.reason",
    assignedUserId: "review.assigned_user_id",
    externalId: "review.external_id",
    isImported: ASSIGNED,
    erasedAt: "review.erased_at",
  },
  reviewHistory: {
    id: ASSIGNED,
    eventId: "history.event_id",
    partnerId: "follows from the connection",
    accountId: "follows from the connection",
    storeId: "follows from the connection",
    reviewId: "history.review_id note.review_id",
    storeReviewSiteId: "history.connection_id",
    event: "history.event",
    axis: "follows from the event",
    actor: "history.actor note.user_id",
    review: "history.rate history.reviewer",
    site: "history.error_code",
    metadata: "history.metadata note.body",
    occurredAt: "history.occurred_at note.created_at",
    recordedAt: AT_IMPORT,
    sequence: "imported rows are in no log",
    subscriptionNumber: "imported rows are in no log",
    isMinimal: "imported rows are in no log",
    gap: "imported rows are in no log",
    unlogged: "imported rows are in no log",
    isImported: ASSIGNED,
    erasedAt: "the texts of an erased row are exported as they are",
  },
};

/** Fields from which an import computes something, and which no export has. */
const WITHOUT_COLUMN = {
  "oauth_client.client_secret": "its hash is stored",
  "note.external_id": "the event id is derived from it",
  "history.external_id": "the event id is derived from it",
};

/** Tables without lines: sign-ins, deliveries, and the state of an installation. */
const LEFT_OUT = [
  "alert_settings",
  "alerts",
  "attempt_stats",
  "audit_log",
  "audit_webhooks",
  "authentication_events",
  "authorization_codes",
  "backlog_stats",
  "batch_entries",
  "batch_windows",
  "company_deletions",
  "delivery_attempts",
  "dispatchers",
  "email_code_limits",
  "email_code_tries",
  "email_codes",
  "endpoint_checks",
  "erasures",
  "imports",
  "inbox",
  "incidents",
  "invitations",
  "keyed_requests",
  "mails",
  "maintenance_jobs",
  "outbox",
  "outbox_offsets",
  "outbox_sequences",
  "outbox_skips",
  "portal_links",
  "portal_settings",
  "processes",
  "provider_events",
  "recoveries",
  "recovery_codes",
  "second_factor_challenges",
  "second_factors",
  "service_actions",
  "services",
  "shards",
  "sign_in_locks",
  "signing_keys",
  "sso_codes",
  "sso_connections",
  "sso_domains",
  "sso_identities",
  "sso_states",
  "stats_progress",
  "token_uses",
  "tokens",
];

/** Lines with every field, each of them with two values of which at least one is no default. */
const FILE = join(import.meta.dir, "every-field.ndjson");
const GIVEN = readFileSync(FILE, "utf8")
  .trim()
  .split("\n")
  .map((text) => JSON.parse(text) as Line);

const idsOf = (kind: string) => GIVEN.filter((line) => line.kind === kind).map(({ id }) => id);
const axisOf = (connected: unknown, error_code: unknown) => ({ connected, error_code });
const companyOf = (kind: string, id: unknown) => (idsOf(kind).includes(id) ? id : null);
const opened = (sealed: unknown, context: string) =>
  typeof sealed === "string" ? box.open(sealed, context) : null;
const contextOf = ({ partnerId, id }: Fields) =>
  webhookSecretAssociatedData(Number(partnerId), String(id));

/** Fields that are stored in another form, or in several columns. */
const STORED: Readonly<Record<string, (row: Fields) => unknown>> = {
  "partner.white_label": (row) =>
    row["whiteLabelEnabled"] === true
      ? { brand_name: row["brandName"], domain: row["whiteLabelDomain"] }
      : null,
  "review_site.secret": (row) =>
    opened(row["sealedSecret"], providerSecretContext(String(row["slug"]))),
  "connection.review_site": (row) =>
    GIVEN.find(({ kind, id }) => kind === "review_site" && id === row["reviewSiteId"])?.["slug"],
  "connection.pull": (row) => axisOf(row["pullConnected"], row["pullErrorCode"]),
  "connection.post": (row) => axisOf(row["postConnected"], row["postErrorCode"]),
  "user.partner_id": (row) => companyOf("partner", row["companyId"]),
  "user.account_id": (row) => companyOf("account", row["companyId"]),
  "user.store_ids": (row) => row["storeIds"],
  "oauth_client.secret_hash": ({ secretHash }) =>
    typeof secretHash === "string" ? `sha256:${secretHash}` : null,
  "subscription.is_active": (row) => row["state"] === "active",
  "subscription.secret": (row) => opened(row["sealedSecret"], contextOf(row)),
  "subscription.previous_secret": (row) => opened(row["sealedPreviousSecret"], contextOf(row)),
  "subscription.headers": ({ partnerId, id, sealedHeaders }) =>
    JSON.parse(
      opened(
        sealedHeaders,
        ownHeadersAssociatedData({ partnerId: Number(partnerId), id: String(id) }),
      ) ?? "",
    ),
  "review.content": (row) => row["content"] || null,
  "response.review_id": (row) => row["id"],
  "flag.review_id": (row) => row["id"],
  "flag.reason": (row) => row["flagReason"] || null,
  "note.user_id": (row) => fieldsOf(row["actor"])["id"],
  "note.body": (row) => fieldsOf(row["metadata"])["body"],
  "history.connection_id": (row) =>
    row["reviewId"] === null ? row["storeReviewSiteId"] : undefined,
  "history.actor": (row) => {
    const { type, id, name } = fieldsOf(row["actor"]);
    return { type, ...(id !== null && { user_id: id }), name };
  },
  "history.rate": (row) => fieldsOf(row["review"])["rate"],
  "history.reviewer": (row) => fieldsOf(row["review"])["reviewer"],
  "history.error_code": (row) => fieldsOf(row["site"])["error_code"],
};

/** Returns the fields, such as `plan.id`, that an entry of `COLUMNS` names. */
const named = (text: string): string[] => text.match(/\b[a-z_]+\.[a-z_]+\b/g) ?? [];

function valueOf(row: Fields, column: string, field: string): unknown {
  const stored = STORED[field];
  const value = stored === undefined ? row[column] : stored(row);
  return value instanceof Date ? isoInstant(value) : (value ?? null);
}

/** Whether a line is about a row of the table that its kind is stored in. */
const isRowOf = (row: Fields, line: Line) =>
  line.kind === "note"
    ? fieldsOf(row["metadata"])["body"] === line["body"]
    : (row["clientId"] ?? row["eventId"] ?? row["id"]) ===
      (line["client_id"] ?? line["event_id"] ?? line["id"] ?? line["review_id"]);

/** Returns the columns of a table that lines have, row by row. */
function keptOf(table: string, rows: Awaited<ReturnType<typeof rowsOf>>) {
  const columns = Object.entries(fieldsOf(fieldsOf(COLUMNS)[table]));
  const kept = rows[table]?.map((row) =>
    columns.flatMap(([column, text]) =>
      named(String(text)).map((field) => ({ [field]: valueOf(row, column, field) })),
    ),
  );
  return kept?.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

async function rowsOf(db: RawDb): Promise<Record<string, Fields[]>> {
  const rows: Record<string, Fields[]> = {};
  const tables: [string, PgTable][] = Object.entries(TABLES);
  for (const [name, table] of tables) rows[name] = await db.select().from(table);
  const links = await db.sql<{ userId: number; storeId: number }[]>`
    select user_id as "userId", store_id as "storeId" from user_stores order by store_id`;
  const storesOf = ({ id }: Fields) => {
    const ids = links.filter(({ userId }) => userId === id).map(({ storeId }) => storeId);
    return ids.length === 0 ? null : ids;
  };
  return {
    ...rows,
    users: rows["users"]?.map((one) => ({ ...one, storeIds: storesOf(one) })) ?? [],
  };
}

async function importInto(db: RawDb, file: string): Promise<void> {
  const options = { file, isDryRun: false, resumes: false, announces: false, skipsFaulty: false };
  const faults: unknown[] = [];
  const onFault = (fault: unknown) => faults.push(fault);
  const deps = { db, box, clock: systemClock, config: testConfig() };
  await importFile(deps, options, { onFault, onProgress: () => {} });
  expect(faults).toEqual([]);
}

const box = createSecretBox({ current: crypto.getRandomValues(new Uint8Array(32)) });
const first = fixture(createDatabase);
const second = fixture(createDatabase);
const folder = fixture(() => {
  const path = mkdtempSync(join(tmpdir(), "columns-"));
  return { path, stop: () => rmSync(path, { recursive: true }) };
});
