import type { Db, Tx } from "../../db/client.ts";
import { readOneInstant } from "../../db/server.ts";
import { recordAudit } from "../audit/queries.ts";
import { type Clock, isoInstant } from "../lib/clock.ts";
import type { SecretBox } from "../lib/secrets.ts";
import { webhookSecretAssociatedData } from "../master-key.ts";
import { openHeaders } from "../outbox/own-headers.ts";
import { providerSecretContext } from "../intake/provider-model.ts";
import type { Kind } from "./format.ts";
import * as queries from "./queries/export.ts";

export interface ExportDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
}

/** A line of an export. Its first field is `kind`. Fields that would be null or undefined are absent. */
export type ExportedLine = Readonly<Record<string, unknown>> & { readonly kind: Kind };

/**
 * Writes all records of the platform, of a partner or of an account as lines that `importFile` reads (contract 10.9),
 * in the order of the kinds and ids. All lines show the database at one instant. They contain password hashes, and the
 * secrets and headers of subscriptions. Only an export of the platform contains the secrets of review sites.
 */
export async function exportRecords(
  { db, box, clock }: ExportDeps,
  scope: queries.Scope,
  write: (lines: readonly ExportedLine[]) => Promise<void>,
): Promise<void> {
  await recordAudit(db, {
    at: clock.now(),
    action: "DATA_EXPORTED",
    actor: null,
    requestContext: null,
    details: { partner_id: scope.partnerId ?? null, account_id: scope.accountId ?? null },
  });
  await db.transaction(async (tx) => {
    await readOneInstant(tx);
    for (const lines of [masterData, users, clients, subscriptions, reviews, history])
      for await (const some of lines(tx, scope, box)) await write(some);
  });
}

type LineChunks = AsyncGenerator<ExportedLine[]>;

function line(kind: Kind, fields: Readonly<Record<string, unknown>>): ExportedLine {
  const given = Object.entries(fields).filter(([, value]) => value != null);
  return { kind, ...Object.fromEntries(given) };
}

const instantText = (at: Date | null) => at && isoInstant(at);
/** Returns the fields of a line by which an import recognises the record. */
const identityFields = ({ id, externalId }: { id: number; externalId: string | null }) => ({
  id,
  external_id: externalId,
});

async function* masterData(tx: Tx, scope: queries.Scope, box: SecretBox): LineChunks {
  yield (await queries.allPlans(tx)).map(({ id, name, features }) =>
    line("plan", { id, name, features }),
  );
  for (const type of ["partner", "account"] as const)
    for await (const some of queries.companies(tx, type, scope))
      yield some.map((one) =>
        line(type, {
          ...identityFields(one),
          name: one.name,
          partner_id: one.partnerId,
          plan_id: one.planId,
          is_active: one.isActive,
          primary_color: one.primaryColor,
          logo_url: one.logoUrl,
          white_label: one.whiteLabelEnabled
            ? { brand_name: one.brandName, domain: one.whiteLabelDomain }
            : null,
          created_at: instantText(one.createdAt),
        }),
      );
  for await (const some of queries.stores(tx, scope))
    yield some.map((one) =>
      line("store", { ...identityFields(one), account_id: one.accountId, name: one.name }),
    );
  yield (await queries.allSites(tx)).map(({ id, slug, name, sealedSecret }) => {
    const isWhole = scope.partnerId === undefined && scope.accountId === undefined;
    const secret = isWhole ? box.open(sealedSecret, providerSecretContext(slug)) : null;
    return line("review_site", { id, slug, name, secret });
  });
  for await (const some of queries.connections(tx, scope))
    yield some.map((one) =>
      line("connection", {
        ...identityFields(one),
        store_id: one.storeId,
        review_site: one.slug,
        pull: { connected: one.pullConnected, error_code: one.pullErrorCode },
        post: { connected: one.postConnected, error_code: one.postErrorCode },
      }),
    );
}

async function* users(tx: Tx, scope: queries.Scope): LineChunks {
  for await (const some of queries.users(tx, scope))
    yield some.map((one) =>
      line("user", {
        ...identityFields(one),
        [one.companyType === "partner" ? "partner_id" : "account_id"]: one.companyId,
        email: one.email,
        name: one.name,
        role: one.role,
        store_ids: one.storeIds.length > 0 ? one.storeIds : null,
        password_hash: one.passwordHash,
        is_active: one.isActive,
        created_at: instantText(one.createdAt),
      }),
    );
}

async function* clients(tx: Tx, scope: queries.Scope): LineChunks {
  yield (await queries.clients(tx, scope)).map((one) =>
    line("oauth_client", {
      client_id: one.clientId,
      partner_id: one.companyId,
      name: one.name,
      secret_hash: one.secretHash === null ? null : `sha256:${one.secretHash}`,
      redirect_uris: one.redirectUris,
      scopes: one.scopes,
      grant_types: one.grantTypes,
      first_party: one.firstParty,
      require_pkce: one.requirePkce,
      created_by: one.createdBy,
      created_at: instantText(one.createdAt),
    }),
  );
}

async function* subscriptions(tx: Tx, scope: queries.Scope, box: SecretBox): LineChunks {
  yield (await queries.subscriptions(tx, scope)).map((one) => {
    const open = (sealed: string | null) =>
      sealed && box.open(sealed, webhookSecretAssociatedData(one.partnerId, one.id));
    return line("subscription", {
      id: one.id,
      partner_id: one.partnerId,
      label: one.label,
      webhook_url: one.webhookUrl,
      delivery_kind: one.deliveryKind,
      batch_interval_hours: one.batchIntervalHours,
      events: one.events,
      payload_mode: one.payloadMode,
      suppress_native_notifications: one.suppressNativeNotifications,
      ordering: one.ordering,
      standard_webhooks: one.standardWebhooks,
      sequence_headers: one.sequenceHeaders,
      headers: openHeaders(box, one, one.sealedHeaders),
      secret: open(one.sealedSecret),
      previous_secret: open(one.sealedPreviousSecret),
      previous_secret_expires_at: instantText(one.previousSecretExpiresAt),
      is_active: one.state === "active",
      disabled_at: instantText(one.state === "active" ? null : one.disabledAt),
      disabled_reason: one.state === "active" ? null : one.disabledReason,
      disabled_note: one.state === "active" ? null : one.disabledNote,
      begins_at: instantText(one.beginsAt),
      created_at: instantText(one.createdAt),
    });
  });
}

async function* reviews(tx: Tx, scope: queries.Scope): LineChunks {
  for await (const some of queries.reviews(tx, scope, "all"))
    yield some.map((one) => ({
      ...line("review", {
        ...identityFields(one),
        connection_id: one.storeReviewSiteId,
        external_review_id: one.externalReviewId,
        rate: one.rate,
        reviewer: one.reviewer,
        reviewer_email: one.reviewerEmail,
        removed_at: instantText(one.removedAt),
        erased_at: instantText(one.erasedAt),
        assigned_user_id: one.assignedUserId,
        reviewed_at: instantText(one.reviewedAt),
        created_at: instantText(one.createdAt),
        updated_at: instantText(one.updatedAt),
      }),
      content: one.content === "" ? null : one.content,
    }));
  for await (const some of queries.reviews(tx, scope, "responded"))
    yield some.map((one) =>
      line("response", {
        review_id: one.id,
        body: one.responseBody,
        user_id: one.responseUserId,
        responded_at: instantText(one.respondedAt),
      }),
    );
  for await (const some of queries.reviews(tx, scope, "flagged"))
    yield some.map((one) =>
      line("flag", { review_id: one.id, status: one.flagStatus, reason: one.flagReason || null }),
    );
}

async function* history(tx: Tx, scope: queries.Scope): LineChunks {
  for await (const some of queries.history(tx, scope))
    yield some.map(({ actor, review, site, ...one }) => {
      const { type, id, name } = actor;
      return {
        ...line("history", {
          event_id: one.eventId,
          event: one.event,
          review_id: one.reviewId,
          connection_id: one.reviewId === null ? one.storeReviewSiteId : null,
          actor: { type, ...(id !== null && { user_id: id }), name },
          error_code: site?.error_code,
          metadata: one.metadata,
          occurred_at: instantText(one.occurredAt),
        }),
        ...(review !== null && { rate: review.rate, reviewer: review.reviewer }),
      };
    });
}
