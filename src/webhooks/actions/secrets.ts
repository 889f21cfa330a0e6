import { mailAboutWebhook } from "../../auth/sign-in/security-mails.ts";
import { recordAudit } from "../../audit/queries.ts";
import { addMs } from "../../lib/clock.ts";
import { fingerprint, newSecret } from "../../lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../master-key.ts";
import { showSecretForms, type Subscription } from "../model.ts";
import * as queries from "../queries/subscriptions.ts";
import { orNotFound, wake, type WebhookDeps } from "./deps.ts";
import type { Caller } from "../../http/principal.ts";

const HOUR_MS = 3_600_000;

/**
 * Replaces the signing secret (contract 6.11). During the grace period deliveries also carry a signature of the
 * previous secret. Only one previous secret is stored, so the grace period of an earlier one ends immediately.
 */
export async function rotateSecret(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  graceHours: number,
): Promise<{ subscription: Subscription; secret: string }> {
  const now = deps.clock.now();
  const secret = newSecret();
  const context = webhookSecretAssociatedData(found.partnerId, found.id);
  const subscription = await deps.db.transaction(async (tx) => {
    const current = orNotFound(await queries.lockSubscription(tx, found.partnerId, found.id));
    const sealed = orNotFound(await queries.sealedSecretOf(tx, current.id));
    const shown = {
      secretFingerprint: fingerprint(secret),
      previousSecretExpiresAt: graceHours === 0 ? null : addMs(now, graceHours * HOUR_MS),
      updatedAt: now,
    };
    await queries.changeSubscription(tx, current.id, {
      ...shown,
      sealedSecret: deps.box.seal(secret, context),
      // The previous secret is sealed again instead of copied, so that its ciphertext uses the current master key.
      sealedPreviousSecret:
        graceHours === 0 ? null : deps.box.seal(deps.box.open(sealed, context), context),
    });
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_SECRET_ROTATED",
      actor: principal,
      requestContext,
      details: { subscription_id: current.id, grace_period_hours: graceHours },
    });
    await mailAboutWebhook(tx, deps, { webhook: current, change: "secret", actor: principal, now });
    return { ...current, ...shown };
  });
  wake(deps, subscription);
  return { subscription, secret };
}

/**
 * Ends the grace period of a rotation immediately (contract 6.11). Without a grace period, nothing is changed or
 * recorded.
 */
export async function endPreviousSecret(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    const current = orNotFound(await queries.lockSubscription(tx, found.partnerId, found.id));
    const { id, previousSecretExpiresAt: endsAt } = current;
    if (endsAt === null || endsAt <= now) return;
    const none = { sealedPreviousSecret: null, previousSecretExpiresAt: null, updatedAt: now };
    await queries.changeSubscription(tx, id, none);
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_PREVIOUS_SECRET_ENDED",
      actor: principal,
      requestContext,
      details: { subscription_id: id },
    });
  });
  wake(deps, found);
}

/** Reads the current signing secret, and records in the audit log that the caller saw it. */
export async function showSecret(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
) {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const sealed = orNotFound(await queries.sealedSecretOf(tx, found.id));
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_SECRET_SHOWN",
      actor: principal,
      requestContext,
      details: { subscription_id: found.id },
    });
    const secret = deps.box.open(sealed, webhookSecretAssociatedData(found.partnerId, found.id));
    return { ...showSecretForms(secret, found), secret_fingerprint: fingerprint(secret) };
  });
}
