import type { Db, Tx } from "../../db/client.ts";
import { readOneInstant } from "../../db/server.ts";
import { recordAudit } from "../auth/queries/audit.ts";
import { type Clock, isoInstant } from "../lib/clock.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { webhookSecretAssociatedData } from "../master-key.ts";
import { providerSecretContext } from "../intake/provider-model.ts";
import type { Kind } from "./format.ts";
import * as queries from "./queries/export.ts";

export interface ExportDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
}

/** A line of an export; `kind` comes first. Fields that are null or undefined are left out. */
export type ExportedLine = Readonly<Record<string, unknown>> & { readonly kind: Kind };

/**
 * Writes all records of the platform, of a partner or of an account as lines that `importFile` takes (contract 10.9), in
 * the order of the kinds and ids. The lines are of one instant. They have password hashes and the secrets of
 * subscriptions; an export of one company leaves out the secrets of review sites.
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

type Lines = AsyncGenerator<ExportedLine[]>;

function line(kind: Kind, fields: Readonly<Record<string, unknown>>): ExportedLine {
  const given = Object.entries(fields).filter(([, value]) => value != null);
  return { kind, ...Object.fromEntries(given) };
}

const instant = (at: Date | null) => at && isoInstant(at);
/** The fields by which a record is found again. */
const identity = ({ id, externalId }: { id: number; externalId: string | null }) => ({
  id,
  external_id: externalId,
});

async function* masterData(tx: Tx, scope: queries.Scope, box: SecretBox): Lines {
  yield (await queries.allPlans(tx)).map(({ id, name, features }) =>
    line("plan", { id, name, features }),
  );
  for (const type of ["partner", "account"] as const)
    for await (const some of queries.companies(tx, type, scope))
      yield some.map((one) =>
        line(type, {
          ...identity(one),
          name: one.name,
          partner_id: one.partnerId,
          plan_id: one.planId,
          is_active: one.isActive,
          primary_color: one.primaryColor,
          logo_url: one.logoUrl,
          white_label: one.whiteLabelEnabled
            ? { brand_name: one.brandName, domain: one.whiteLabelDomain }
            : null,
          created_at: instant(one.createdAt),
        }),
      );
  for await (const some of queries.stores(tx, scope))
    yield some.map((one) =>
      line("store", { ...identity(one), account_id: one.accountId, name: one.name }),
    );
  yield (await queries.allSites(tx)).map(({ id, slug, name, sealedSecret }) => {
    const isWhole = scope.partnerId === undefined && scope.accountId === undefined;
    const secret = isWhole ? box.open(sealedSecret, providerSecretContext(slug)) : null;
    return line("review_site", { id, slug, name, secret });
  });
  for await (const some of queries.connections(tx, scope))
    yield some.map((one) =>
      line("connection", {
        ...identity(one),
        store_id: one.storeId,
        review_site: one.slug,
        pull: { connected: one.pullConnected, error_code: one.pullErrorCode },
        post: { connected: one.postConnected, error_code: one.postErrorCode },
      }),
    );
}

async function* users(tx: Tx, scope: queries.Scope): Lines {
  for await (const some of queries.users(tx, scope))
    yield some.map((one) =>
      line("user", {
        ...identity(one),
        [one.companyType === "partner" ? "partner_id" : "account_id"]: one.companyId,
        email: one.email,
        name: one.name,
        role: one.role,
        store_ids: one.storeIds.length > 0 ? one.storeIds : null,
        password_hash: one.passwordHash,
        is_active: one.isActive,
        created_at: instant(one.createdAt),
      }),
    );
}

async function* clients(tx: Tx, scope: queries.Scope): Lines {
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
      created_at: instant(one.createdAt),
    }),
  );
}

async function* subscriptions(tx: Tx, scope: queries.Scope, box: SecretBox): Lines {
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
      secret: open(one.sealedSecret),
      previous_secret: open(one.sealedPreviousSecret),
      previous_secret_expires_at: instant(one.previousSecretExpiresAt),
      is_active: one.state === "active",
      disabled_at: instant(one.state === "active" ? null : one.disabledAt),
      disabled_reason: one.state === "active" ? null : one.disabledReason,
      disabled_note: one.state === "active" ? null : one.disabledNote,
      begins_at: instant(one.beginsAt),
      created_at: instant(one.createdAt),
    });
  });
}

async function* reviews(tx: Tx, scope: queries.Scope): Lines {
  for await (const some of queries.reviews(tx, scope, "all"))
    yield some.map((one) => ({
      ...line("review", {
        ...identity(one),
        connection_id: one.storeReviewSiteId,
        external_review_id: one.externalReviewId,
        rate: one.rate,
        reviewer: one.reviewer,
        reviewer_email: one.reviewerEmail,
        removed_at: instant(one.removedAt),
        erased_at: instant(one.erasedAt),
        assigned_user_id: one.assignedUserId,
        reviewed_at: instant(one.reviewedAt),
        created_at: instant(one.createdAt),
        updated_at: instant(one.updatedAt),
      }),
      content: one.content === "" ? null : one.content,
    }));
  for await (const some of queries.reviews(tx, scope, "responded"))
    yield some.map((one) =>
      line("response", {
        review_id: one.id,
        body: one.responseBody,
        user_id: one.responseUserId,
        responded_at: instant(one.respondedAt),
      }),
    );
  for await (const some of queries.reviews(tx, scope, "flagged"))
    yield some.map((one) =>
      line("flag", { review_id: one.id, status: one.flagStatus, reason: one.flagReason || null }),
    );
}

async function* history(tx: Tx, scope: queries.Scope): Lines {
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
          occurred_at: instant(one.occurredAt),
        }),
        ...(review !== null && { rate: review.rate, reviewer: review.reviewer }),
      };
    });
}
