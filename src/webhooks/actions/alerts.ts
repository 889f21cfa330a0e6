import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { changesOf } from "../../auth/audit-changes.ts";
import { guardReceivers } from "../../auth/guard.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { AuditAction } from "../../auth/audit-model.ts";
import { type Caller, type Principal, tenantOf } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Config } from "../../lib/config.ts";
import { checkNewWebhookUrl } from "../../lib/egress.ts";
import type { Lookup } from "../../lib/name-resolver.ts";
import { Problem } from "../../lib/problem.ts";
import { newSecret } from "../../lib/secrets.ts";
import { fingerprint } from "../../lib/secret-box.ts";
import { eachMailbox, hasMailbox, isMailAddress, normalEmail } from "../../lib/email.ts";
import { alertSecretAssociatedData } from "../../outbox/mail.ts";
import {
  DEFAULTS,
  type AlertSettings,
  type AlertSettingsUpdate,
  unconfirmedOf,
} from "../alert-model.ts";
import * as queries from "../queries/alerts.ts";
import type { SettingsRow } from "../queries/alerts.ts";
import { askRecipients, type RecipientDeps } from "./alert-recipients.ts";
import type { Waker } from "../../outbox/schedule.ts";

export interface AlertDeps extends RecipientDeps {
  readonly schedule: Waker;
  readonly config: Pick<Config, "egress" | "serverRoot">;
  /** The DNS look-up of the alert URL's host; the resolver of the system if absent. */
  readonly lookup?: Lookup;
}

/** Reads the alert settings of the caller's partner: the defaults until the partner has set any. */
export async function findSettings(
  { db }: Pick<AlertDeps, "db">,
  principal: Principal,
): Promise<AlertSettings> {
  return (await queries.settingsOf(db, tenantOf(principal))) ?? DEFAULTS;
}

/**
 * Checks rules of alert settings that a schema cannot express: that the addresses can receive mail, and that POSTs to
 * the URL are allowed.
 */
export async function settingsErrors(
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
        ? "must have disabled: nothing is sent from then on"
        : undefined,
    recipients:
      eachMailbox(valid).length < valid.length
        ? "must name each mailbox once, in one spelling"
        : undefined,
    [`recipients.${bad}`]: bad < 0 ? undefined : "must be one plain email address",
    webhook_url: check?.kind === "refused" ? check.reason : undefined,
  };
}

/**
 * Changes the alert settings. Setting the first `webhook_url` creates a secret, and removing the URL deletes the
 * secret. An update of `recipients` mails a link to those that have not confirmed; removed ones must confirm again.
 */
export async function updateSettings(
  deps: AlertDeps,
  caller: Caller,
  body: AlertSettingsUpdate,
): Promise<AlertSettings & { readonly secret: string | null }> {
  return change(deps, caller, (before) => {
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
    const fields = Object.keys(body);
    // Recipients are persons, and an erasure would not find their addresses in the audit log.
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
export async function rotateSecret(
  deps: AlertDeps,
  caller: Caller,
): Promise<AlertSettings & { readonly secret: string | null }> {
  return change(deps, caller, (before) => {
    if (before.webhookUrl === null) throw new Problem("not_found");
    const { sealed, secret } = freshSecret(deps, before);
    const after = { ...before, ...sealed };
    return { after, secret, action: "ALERTS_SECRET_ROTATED", details: {}, asked: [] };
  });
}

/** Reads the current secret of alert POSTs, and records in the audit log that the caller saw it. */
export async function showSecret(
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

interface Change {
  readonly after: SettingsRow;
  readonly secret: string | null;
  readonly action: AuditAction;
  readonly details: Readonly<Record<string, unknown>>;
  /** The recipients that are asked to confirm. */
  readonly asked: readonly string[];
}

/** Applies a change to the locked row of the alert settings, and records the change in the audit log. */
async function change(
  deps: AlertDeps,
  { principal, requestContext }: Caller,
  decide: (before: SettingsRow) => Change,
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
