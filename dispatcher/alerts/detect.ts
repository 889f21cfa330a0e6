import type { Db, RawDb } from "../../db/client.ts";
import { addMs, type Clock, isoInstant } from "../../src/lib/clock.ts";
import { hmacSha256Hex } from "../../src/lib/secrets.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { ALERT_EVENT, alertSecretAssociatedData } from "../../src/outbox/alert.ts";
import { requestHeaders } from "../../src/outbox/payload-format.ts";
import { postErrorOf } from "../../src/outbox/tls-reason.ts";
import type { Waker } from "../../src/outbox/schedule.ts";
import type { Deliver, DeliveryRequest, PostResult } from "../delivery/deliver.ts";
import { hostOf, type Reach } from "../delivery/reach.ts";
import type { Job } from "../maintenance/loop.ts";
import { failureOf, halvesOf } from "../store/group-runner.ts";
import { raiseAlerts, type Raised, type RaiseDeps } from "./incidents.ts";
import { mailAlerts, type MailDeps } from "./mail.ts";
import { type ClaimedPost, claimPosts, findTrouble, updateClaimedPost } from "./queries.ts";

export interface LookDeps extends MailDeps, RaiseDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly schedule: Pick<Waker, "wakeMailer">;
}

const LOOK_S = 5;
const MINUTE_MS = 60_000;
/** The most subscriptions, or partners, that one transaction handles. */
const IDS_PER_TRANSACTION = 100;

/**
 * Checks the subscriptions in trouble and raises each kind of alert once per incident. Returns the raised alerts. Each
 * transaction takes a lock, so that no two processes raise the same alert. `everywhere`: also checks subscriptions that
 * only have a backlog.
 */
export async function detectIncidents(deps: LookDeps, everywhere: boolean, stop: AbortSignal) {
  const { db, clock, log, schedule } = deps;
  const at = clock.now();
  const { troubled, unmailed } = await findTrouble(db, everywhere);
  const raised: Raised[] = [];
  await inBatches({ log, stop, field: "subscription_id" }, troubled, async (group) => {
    const made = await db.transaction((tx) => raiseAlerts(tx, deps, { ids: group, at }));
    for (const { kind, subscriptionId } of made)
      log.info("alert.raised", { kind, subscription_id: subscriptionId });
    raised.push(...made);
  });
  // Alerts of earlier checks are mailed, too, because they may still wait for the next mail to their partner.
  const partnerIds = [...unmailed, ...raised.map(({ partnerId }) => partnerId)];
  await inBatches({ log, stop, field: "partner_id" }, partnerIds, async (group) => {
    if (await db.transaction((tx) => mailAlerts(tx, deps, { partnerIds: group, at })))
      schedule.wakeMailer();
  });
  return raised;
}

/**
 * Runs `work` for groups of items. A group that fails is halved until only the failing item is left, so that the
 * others succeed.
 */
async function inBatches<T extends string | number>(
  { log, stop, field }: Pick<LookDeps, "log"> & { stop: AbortSignal; field: string },
  items: readonly T[],
  work: (group: readonly T[]) => Promise<void>,
): Promise<void> {
  const chunks = Map.groupBy(new Set(items), (_, i) => Math.floor(i / IDS_PER_TRANSACTION));
  const groups = [...chunks.values()];
  for (let group = groups.shift(); group && !stop.aborted; group = groups.shift())
    try {
      await work(group);
    } catch (error) {
      const failure = failureOf(error);
      if (failure === "store") throw error;
      log.warn("alerts.failed", { items: group.length, failure, ...errorFields(error) });
      if (group.length > 1) groups.push(...halvesOf(group, (item) => item));
      else if (failure === "refused")
        log.error("alerts.stuck", { [field]: group[0], ...errorFields(error) });
    }
}

/**
 * Makes the job that raises alerts. The POSTs of alerts run while the next checks go on, so no check waits for a
 * receiver.
 */
export function alertsJob(
  deps: LookDeps & PostDeps & { readonly db: RawDb },
  stop: AbortSignal,
): Job {
  const { db, clock, log } = deps;
  let lastMinute: number | undefined;
  let posting: Promise<void> | undefined;
  return {
    name: "alerts",
    paceS: LOOK_S,
    anyClock: true,
    db,
    async run() {
      const minute = Math.floor(clock.now().getTime() / MINUTE_MS);
      const { length: rows } = await detectIncidents(deps, minute !== lastMinute, stop);
      lastMinute = minute;
      posting ??= postAlerts(deps, stop)
        .catch((error: unknown) => log.warn("alerts.failed", errorFields(error)))
        .finally(() => (posting = undefined));
      return { rows };
    },
    drain: () => posting,
  };
}

interface PostDeps extends Pick<LookDeps, "db" | "clock" | "log" | "box" | "config"> {
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  /** The evidence whether our own parts of the way to receivers work. The deliveries share it. */
  readonly reach: Reach;
}

/** The delay in milliseconds before an alert is posted again after an attempt that failed on our side (our choice). */
const UNSENT_DELAY_MS = 60_000;

/**
 * Makes the due alert POSTs until none of them is left. Each alert has four attempts, like a delivery (contract 7.7).
 */
export async function postAlerts(deps: PostDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const claimed = await claimPosts(deps.db, deps.clock.now());
    if (claimed.length === 0) return;
    await Promise.all(claimed.map((one) => post(deps, one)));
  }
}

/** The outcome of a POST to a partner that has no address for alerts any more. */
const NO_ADDRESS = { kind: "unconfigured" } as const;

async function post(deps: PostDeps, claimed: ClaimedPost): Promise<void> {
  const { db, clock, log } = deps;
  const { alert } = claimed;
  const fields = { alert_id: alert.id, kind: alert.kind, attempt: alert.webhookAttempt };
  try {
    const request = requestOf(deps, claimed, clock.now());
    const { partnerId } = alert;
    const outcome = request ? await postAndAttribute(deps, request, partnerId) : NO_ADDRESS;
    const posted = { ...fields, outcome: outcome.kind };
    if (outcome.kind === "accepted") log.debug("alert.posted", posted);
    else log.warn("alert.posted", posted);
    await updateClaimedPost(db, alert, moveOf(outcome, alert.webhookAttempt, deps));
  } catch (error) {
    // The claim of the alert expires, and the POST is made again.
    log.warn("alert.post_failed", { ...fields, ...errorFields(error) });
  }
}

/**
 * Makes the POST. If it fails because of a part of our own, the result is `unsent`, as for a delivery (contract 7.8).
 */
async function postAndAttribute(deps: PostDeps, request: DeliveryRequest, partnerId: number) {
  const { clock, deliver, reach } = deps;
  const startedMs = clock.monotonicMs();
  const result = await deliver(request, { partnerId });
  const made = { host: hostOf(request.url), partnerId, startedMs, endedMs: clock.monotonicMs() };
  return reach.attribute(result, made, deps);
}

/** Composes the POST of an alert; undefined if the partner has no address for alerts any more. */
function requestOf(
  { box, config }: Pick<PostDeps, "box" | "config">,
  { alert, subscription, settings }: ClaimedPost,
  now: Date,
): DeliveryRequest | undefined {
  if (settings?.webhookUrl == null || settings.sealedSecret === null) return undefined;
  const secret = box.open(
    settings.sealedSecret,
    alertSecretAssociatedData(settings.partnerId, settings.id),
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
    place: null,
    standard: null,
  });
  return { url: settings.webhookUrl, headers, body };
}

function moveOf(
  outcome: PostResult | typeof NO_ADDRESS,
  attempt: number,
  { clock, retryDelaysMs }: Pick<PostDeps, "clock" | "retryDelaysMs">,
) {
  if (outcome.kind === "accepted")
    return { webhookState: "sent", webhookDueAt: null, webhookError: null } as const;
  // A POST that was not sent does not count as an attempt and is made again under its number. The claim has already
  // counted it, so one is subtracted.
  if (outcome.kind === "unsent")
    return {
      webhookAttempt: attempt - 1,
      webhookDueAt: addMs(clock.now(), UNSENT_DELAY_MS),
      webhookError: "unsent",
    };
  const isLast = outcome.kind === "unconfigured" || outcome.kind === "gone";
  const delayMs = isLast ? undefined : retryDelaysMs[attempt - 1];
  const webhookState = delayMs === undefined ? "dead" : "queued";
  const webhookDueAt = delayMs === undefined ? null : addMs(clock.now(), delayMs);
  return { webhookState, webhookDueAt, webhookError: postErrorOf(outcome) } as const;
}
