import type { Static } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { ulid } from "ulid";

import * as queries from "../queries/alerts.ts";
import type { Tx } from "../../../db/client.ts";
import { changedFields, changesOf } from "../../audit/changes.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordAudit } from "../../audit/queries.ts";
import {
  partnerAdmin,
  withStepUp,
  withStepUpOfReceivers,
  guardReceivers,
} from "../../auth/access/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS, type ValidParts } from "../../http/fields.ts";
import { join } from "../../http/join.ts";
import { type Caller, type Principal, tenantOf } from "../../http/principal.ts";
import type { RuleInput, RuleErrors } from "../../http/rules.ts";
import type { Config } from "../../lib/config.ts";
import { checkNewWebhookUrl } from "../../lib/egress.ts";
import { eachMailbox, hasMailbox, isMailAddress, normalEmail } from "../../lib/email.ts";
import type { Lookup } from "../../lib/name-resolver.ts";
import { Problem } from "../../lib/problem.ts";
import { fingerprint } from "../../lib/secrets.ts";
import { newSecret } from "../../lib/secrets.ts";
import { alertSecretAssociatedData } from "../../outbox/alert.ts";
import type { Waker } from "../../outbox/schedule.ts";
import {
  confirmRecipient,
  askRecipients,
  type RecipientDeps,
} from "../actions/alert-recipients.ts";
import {
  AlertSettingsObject,
  AlertSettingsUpdate,
  AlertSettingsWithSecret,
  ConfirmedRecipient,
  RecipientCode,
  showSettings,
  DEFAULTS,
  type AlertSettings,
  unconfirmedOf,
} from "../alert-model.ts";
import { SecretAnswer } from "../model.ts";
import type { SettingsRow } from "../queries/alerts.ts";

const alertReading = partnerAdmin("webhooks:read");
const alertWriting = partnerAdmin("webhooks:write");

type AlertRouteDeps = AlertDeps & { readonly checks: Checks };

/**
 * Serves the alert settings of a partner, the secret of alert POSTs (contract 7.17), and the recipients' confirmation.
 */
export function alertRoutes(deps: AlertRouteDeps) {
  return join(settingsRoutes(deps), confirmationRoutes(deps));
}

/**
 * Serves the confirmation without a token. Its path is outside of `/partner`, where routes require a token (contract
 * 3.3); the previous path below `/partner` is deprecated.
 */
function confirmationRoutes(deps: AlertRouteDeps) {
  const confirm = ({ body }: { readonly body: Static<typeof RecipientCode> }) =>
    confirmRecipient(deps, body.code);
  const hooks = {
    public: true,
    body: RecipientCode,
    response: { 200: ConfirmedRecipient, 400: errorResponse("invalid_code") },
  } as const;
  return new Elysia({ prefix: BASE_PATH, tags: ["Webhooks"] })
    .use(deps.checks)
    .post("/alert-recipients/confirm", confirm, {
      ...hooks,
      detail: {
        operationId: "confirmAlertRecipient",
        summary: "Confirm a recipient of alerts",
        description: "Requires the code of the mailed link, which is valid for seven days.",
      },
    })
    .post("/partner/alerts/confirm", confirm, {
      ...hooks,
      detail: {
        operationId: "confirmAlertRecipientOfPartner",
        summary: "Confirm a recipient of alerts at the previous path",
        description: "The same as `POST /alert-recipients/confirm`.",
        deprecated: true,
      },
    });
}

function settingsRoutes(deps: AlertRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/alerts`, tags: ["Webhooks"] })
    .use(deps.checks)
    .get("", async ({ principal }) => showSettings(await findSettings(deps, principal)), {
      access: alertReading,
      response: { 200: AlertSettingsObject },
      detail: {
        operationId: "getAlerts",
        summary: "Show the alert settings",
        description: "Returns the defaults until they are changed.",
      },
    })
    .patch(
      "",
      async ({ principal, requestContext, body }) => {
        const { secret, ...settings } = await updateSettings(
          deps,
          { principal, requestContext },
          body,
        );
        return { ...showSettings(settings), secret };
      },
      {
        access: withStepUpOfReceivers(alertWriting),
        body: AlertSettingsUpdate,
        rules: ({ principal, body }: RuleInput<typeof AlertSettingsUpdate>) =>
          settingsErrors(deps, principal, body),
        response: { 200: AlertSettingsWithSecret },
        detail: {
          operationId: "updateAlerts",
          summary: "Change the alert settings",
          description:
            "Send only the fields to change. The first `webhook_url` creates a secret. Changing `webhook_url` or `recipients` requires a fresh session.",
        },
      },
    )
    .post(
      "/rotate-secret",
      async ({ principal, requestContext }) => {
        const { secret, ...settings } = await rotateSecret(deps, { principal, requestContext });
        return { ...showSettings(settings), secret };
      },
      {
        access: withStepUp(alertWriting),
        body: NO_FIELDS,
        response: { 200: AlertSettingsWithSecret, 404: errorResponse("not_found") },
        detail: {
          operationId: "rotateAlertSecret",
          summary: "Rotate the secret of alerts",
          description: "Takes effect immediately, without a grace period.",
        },
      },
    )
    .post(
      "/secret",
      ({ principal, requestContext }) => showSecret(deps, { principal, requestContext }),
      {
        access: withStepUp(alertWriting),
        body: NO_FIELDS,
        response: { 200: SecretAnswer, 404: errorResponse("not_found") },
        detail: {
          operationId: "showAlertSecret",
          summary: "Show the secret of alerts",
          description: "Each request is recorded in the audit log.",
        },
      },
    );
}

interface AlertDeps extends RecipientDeps {
  readonly schedule: Waker;
  readonly config: Pick<Config, "egress" | "serverRoot">;
  /** The DNS look-up of the alert URL's host; the resolver of the system if absent. */
  readonly lookup?: Lookup;
}

/** Reads the alert settings of the caller's partner: the defaults until the partner has set any. */
async function findSettings(
  { db }: Pick<AlertDeps, "db">,
  principal: Principal,
): Promise<AlertSettings> {
  return (await queries.settingsOf(db, tenantOf(principal))) ?? DEFAULTS;
}

/**
 * Checks rules of alert settings that a schema cannot express: that the addresses can receive mail, and that POSTs to
 * the URL are allowed.
 */
async function settingsErrors(
  { config, lookup }: Pick<AlertDeps, "config" | "lookup">,
  { partnerId }: Principal,
  body: ValidParts<AlertSettingsUpdate>,
): Promise<RuleErrors> {
  const { recipients, kinds, webhook_url: url } = body;
  const valid = recipients?.filter((one) => one !== undefined) ?? [];
  const bad = recipients?.findIndex((one) => one !== undefined && !isMailAddress(one)) ?? -1;
  const check =
    typeof url === "string"
      ? await checkNewWebhookUrl(url, config.egress, { lookup, partnerId })
      : undefined;
  const isWhole = kinds?.every((kind) => kind !== undefined) ?? false;
  return {
    kinds:
      isWhole && !kinds?.includes("disabled")
        ? "must have disabled, because a disabled subscription sends nothing"
        : undefined,
    recipients:
      eachMailbox(valid).length < valid.length ? "must contain each mailbox only once" : undefined,
    [`recipients.${bad}`]:
      bad < 0 ? undefined : "must be a single email address without a display name",
    webhook_url: check?.kind === "refused" ? check.reason : undefined,
  };
}

/**
 * Changes the alert settings. Setting the first `webhook_url` creates a secret, and removing the URL deletes it. An
 * update of `recipients` mails a link to each address that has not confirmed. An address that was removed must confirm
 * again if it is added later.
 */
async function updateSettings(
  deps: AlertDeps,
  caller: Caller,
  body: AlertSettingsUpdate,
): Promise<AlertSettings & { readonly secret: string | null }> {
  return changeSettings(deps, caller, (before) => {
    const { recipients = before.recipients } = body;
    const after = {
      ...before,
      recipients,
      confirmedRecipients: (recipients ?? []).filter((one) =>
        hasMailbox(before.confirmedRecipients, one),
      ),
      ...(body.kinds !== undefined && { kinds: body.kinds }),
      ...(body.oldest_waiting_minutes !== undefined && {
        oldestWaitingMinutes: body.oldest_waiting_minutes,
      }),
      ...(body.digest_minutes !== undefined && { digestMinutes: body.digest_minutes }),
      ...(body.webhook_url !== undefined && { webhookUrl: body.webhook_url }),
    };
    const inOneForm = (some: typeof recipients) => some && some.map(normalEmail);
    guardReceivers(caller.principal, inOneForm(before.recipients), inOneForm(recipients));
    guardReceivers(caller.principal, [before.webhookUrl], [after.webhookUrl]);
    const fields = changedFields(Object.keys(body), before, after);
    // The audit log does not contain `recipients`, because they are addresses of persons, and an erasure would not find
    // them there.
    const named = fields.filter((field) => field !== "recipients");
    const rest = {
      action: "ALERTS_UPDATED" as const,
      details: { fields, changes: changesOf(named, before, after) },
      asked: body.recipients === undefined ? [] : unconfirmedOf(after),
    };
    if (after.webhookUrl === null)
      return {
        after: { ...after, sealedSecret: null, secretFingerprint: null },
        secret: null,
        ...rest,
      };
    const needsSecret = before.sealedSecret === null;
    const made = needsSecret ? freshSecret(deps, before) : { sealed: {}, secret: null };
    return { after: { ...after, ...made.sealed }, secret: made.secret, ...rest };
  });
}

/**
 * Replaces the secret of alert POSTs immediately. Throws `not_found` if no URL is set, because there is no secret
 * then.
 */
async function rotateSecret(
  deps: AlertDeps,
  caller: Caller,
): Promise<AlertSettings & { readonly secret: string | null }> {
  return changeSettings(deps, caller, (before) => {
    if (before.webhookUrl === null) throw new Problem("not_found");
    const { sealed, secret } = freshSecret(deps, before);
    const after = { ...before, ...sealed };
    return { after, secret, action: "ALERTS_SECRET_ROTATED", details: {}, asked: [] };
  });
}

/** Reads the current secret of alert POSTs, and records in the audit log that the caller saw it. */
async function showSecret(
  { db, box, clock }: AlertDeps,
  { principal, requestContext }: Caller,
): Promise<{ secret: string; secret_fingerprint: string }> {
  const at = clock.now();
  return db.transaction(async (tx) => {
    const row = await queries.settingsOf(tx, tenantOf(principal));
    if (row?.sealedSecret == null) throw new Problem("not_found");
    const action = "ALERTS_SECRET_SHOWN";
    await recordAudit(tx, { at, action, actor: principal, requestContext, details: {} });
    const secret = box.open(row.sealedSecret, alertSecretAssociatedData(row.partnerId, row.id));
    return { secret, secret_fingerprint: fingerprint(secret) };
  });
}

function freshSecret({ box }: Pick<AlertDeps, "box">, { partnerId, id }: SettingsRow) {
  const secret = newSecret();
  const sealedSecret = box.seal(secret, alertSecretAssociatedData(partnerId, id));
  return { secret, sealed: { sealedSecret, secretFingerprint: fingerprint(secret) } };
}

interface SettingsChange {
  readonly after: SettingsRow;
  readonly secret: string | null;
  readonly action: AuditAction;
  readonly details: Readonly<Record<string, unknown>>;
  /** The recipients that are asked to confirm. */
  readonly asked: readonly string[];
}

/** Applies a change to the locked row of the alert settings, and records the change in the audit log. */
async function changeSettings(
  deps: AlertDeps,
  { principal, requestContext }: Caller,
  decide: (before: SettingsRow) => SettingsChange,
): Promise<AlertSettings & { readonly secret: string | null }> {
  const at = deps.clock.now();
  const { isMailed, ...changed } = await deps.db.transaction(async (tx: Tx) => {
    const fresh = {
      ...DEFAULTS,
      id: ulid(at.getTime()),
      partnerId: tenantOf(principal),
      sealedSecret: null,
      updatedAt: at,
    };
    const { after, secret, action, details, asked } = decide(await queries.lockSettings(tx, fresh));
    await queries.updateSettings(tx, { ...after, updatedAt: at });
    await askRecipients(tx, deps, { partnerId: after.partnerId, asked, now: at });
    await recordAudit(tx, { at, action, actor: principal, requestContext, details });
    return { ...after, updatedAt: at, secret, isMailed: asked.length > 0 };
  });
  if (isMailed) deps.schedule.wakeMailer();
  return changed;
}
