import type { Db } from "../../db/client.ts";
import { addMs, isoInstant, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { ALERT_EVENT, alertSecretContext } from "../../src/outbox/mail.ts";
import { requestHeaders } from "../../src/outbox/payload-format.ts";
import type { Deliver, DeliveryRequest, PostOutcome } from "../delivery/deliver.ts";
import { hmacSha256Hex } from "../../src/lib/secrets.ts";
import { claimPosts, movePost, type ClaimedPost } from "./queries.ts";

export interface PostDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  readonly config: { readonly serverRoot: string };
}

/** Makes the POSTs that are due, until none is; each has four attempts, as a delivery has (contract 7.7). */
export async function postAlerts(deps: PostDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const claimed = await claimPosts(deps.db, deps.clock.now());
    if (claimed.length === 0) return;
    await Promise.all(claimed.map((one) => post(deps, one)));
  }
}

async function post(deps: PostDeps, claimed: ClaimedPost): Promise<void> {
  const { db, clock, log } = deps;
  const { alert } = claimed;
  const fields = { alert_id: alert.id, kind: alert.kind, attempt: alert.webhookAttempt };
  try {
    const request = requestOf(deps, claimed, clock.now());
    const { partnerId } = alert;
    const outcome = request && (await deps.deliver(request, { partnerId }));
    const move = moveOf(outcome, alert.webhookAttempt, deps);
    const level = move.webhookState === "sent" ? "debug" : "warn";
    log[level]("alert.posted", { ...fields, outcome: outcome?.kind ?? "unconfigured" });
    await movePost(db, alert, move);
  } catch (error) {
    // The claim ends by itself, and the attempt is made again.
    log.warn("alert.unposted", { ...fields, ...errorFields(error) });
  }
}

/** Undefined where no address is set any more. */
function requestOf(
  { box, config }: Pick<PostDeps, "box" | "config">,
  { alert, subscription, settings }: ClaimedPost,
  now: Date,
): DeliveryRequest | undefined {
  if (settings?.webhookUrl == null || settings.sealedSecret === null) return undefined;
  const secret = box.open(
    settings.sealedSecret,
    alertSecretContext(settings.partnerId, settings.id),
  );
  const body = JSON.stringify({
    event: ALERT_EVENT,
    alert_id: alert.id,
    alert: alert.kind,
    incident_id: alert.incidentId,
    raised_at: isoInstant(alert.raisedAt),
    delivered_at: isoInstant(now),
    partner: { id: alert.partnerId },
    subscription,
    cause: alert.cause,
    url: `${config.serverRoot}/dashboard/webhooks/${subscription.id}`,
  });
  const headers = requestHeaders({
    event: ALERT_EVENT,
    eventId: alert.id,
    attempt: alert.webhookAttempt,
    signature: hmacSha256Hex(secret, body),
    previousSignature: null,
  });
  return { url: settings.webhookUrl, headers, body };
}

function moveOf(
  outcome: PostOutcome | undefined,
  attempt: number,
  { clock, retryDelaysMs }: Pick<PostDeps, "clock" | "retryDelaysMs">,
) {
  if (outcome?.kind === "accepted")
    return { webhookState: "sent", webhookDueAt: null, webhookError: null } as const;
  const isLast = outcome === undefined || outcome.kind === "gone";
  const delayMs = isLast ? undefined : retryDelaysMs[attempt - 1];
  const webhookState = delayMs === undefined ? "dead" : "queued";
  const webhookDueAt = delayMs === undefined ? null : addMs(clock.now(), delayMs);
  return { webhookState, webhookDueAt, webhookError: errorOf(outcome) } as const;
}

function errorOf(outcome: PostOutcome | undefined): string {
  if (outcome === undefined) return "unconfigured";
  if ("statusCode" in outcome) return `http_${outcome.statusCode}`;
  return "errorCode" in outcome ? outcome.errorCode : outcome.kind;
}
