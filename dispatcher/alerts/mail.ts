import type { Tx } from "../../db/client.ts";
import { waitForTurn } from "../../db/server.ts";
import { addMs, isoInstant, parseInstant, utcTime } from "../../src/lib/clock.ts";
import { eachMailbox, hasMailbox } from "../../src/lib/email.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { percentOf } from "../../src/lib/percent.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import { ALERT_DEFAULTS, type AlertKind, TROUBLE_KINDS } from "../../src/outbox/alert.ts";
import { type NewMail, queueMails } from "../../src/outbox/mail.ts";
import { tlsWords } from "../../src/outbox/tls-reason.ts";
import { brandedMail, inert, type MailBrand, mailBrandOf } from "../../src/lib/branded-mail.ts";
import { ATTEMPTS, DISABLE_AFTER_FAILURES } from "../actor/decide.ts";
import type { Cause } from "./incidents.ts";
import * as queries from "./queries.ts";
import type { PartnerRow, SeenRow, UnmailedRow } from "./queries.ts";

const MINUTE_MS = 60_000;

/** The health of a subscription, which a mail shows as the subscription's page does (contract 6.17). */
interface HealthSummary {
  /** Null while the subscription is disabled. */
  readonly condition: "healthy" | "degraded" | "failing" | null;
  readonly successRate1h: number | null;
  /** The beginning of the incident; undefined if no attempt failed. */
  readonly since: Date | undefined;
  /** The end of the incident; null while it is open. */
  readonly endedAt: Date | null;
  /** The number of queued events, pending or held. */
  readonly queued: number;
  /** The first event that waits for a retry, with the number of its attempts; undefined if there is none. */
  readonly retry: { readonly attempts: number; readonly dueAt: Date } | undefined;
}

export interface MailDeps {
  readonly box: SecretBox;
  readonly config: { readonly serverRoot: string };
  readonly log: Pick<Log, "warn">;
  /**
   * Reads the summary of a subscription and an incident; undefined if the subscription was deleted. The function reads
   * outside of the transaction of the mails, because a failed statement would abort that transaction.
   */
  readonly healthSummaryOf: (one: SubscriptionKey) => Promise<HealthSummary | undefined>;
}

type SubscriptionKey = Pick<SeenRow, "id" | "partnerId"> & Pick<UnmailedRow, "incidentId">;

/** Queues one mail with all pending alerts to each recipient of the partners with a due digest. */
export async function mailAlerts(
  tx: Tx,
  deps: MailDeps,
  { partnerIds, at }: { readonly partnerIds: readonly number[]; readonly at: Date },
): Promise<boolean> {
  // The lock keeps two processes from mailing the same alerts.
  await waitForTurn(tx, "alerts");
  const unmailed = await queries.unmailedAlerts(tx, partnerIds, at);
  const byPartner = Map.groupBy(unmailed, (one) => one.partnerId);
  const turns = [...byPartner.values()].filter((rows) => isTurn(rows, at));
  if (turns.length === 0) return false;
  const partners = Map.groupBy(await queries.partnersOf(tx, partnerIds), ({ id }) => id);
  const mails: NewMail[] = [];
  for (const rows of turns) {
    // Only `raiseAlerts` writes causes, so each has this shape.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const alerts = rows.map((row) => ({ ...row, cause: row.cause as Cause }));
    const [first] = rows;
    if (first === undefined) continue;
    const { partnerId, subscriptionId: id, settings } = first;
    const { incidentId } = leadOf(alerts).lead;
    const isOne = rows.every((row) => row.subscriptionId === id);
    const summary = isOne
      ? await readHealthSummary(deps, { id, partnerId, incidentId })
      : undefined;
    for (const to of recipientsOf(partners.get(partnerId) ?? [], settings))
      mails.push({ ...alertMail(alerts, to, { ...deps.config, summary }), partnerId });
  }
  const mailed = turns.flat().map(({ id }) => id);
  await queries.markMailed(tx, mailed, at);
  await queueMails(tx, deps, mails, at);
  return mails.length > 0;
}

/** Reads the summary of a subscription. If that fails, the mail is sent without it rather than late. */
function readHealthSummary(
  deps: MailDeps,
  one: SubscriptionKey,
): Promise<HealthSummary | undefined> {
  return deps.healthSummaryOf(one).catch((error: unknown) => {
    deps.log.warn("alert.summary_failed", { subscription_id: one.id, ...errorFields(error) });
    return undefined;
  });
}

/**
 * Whether a mail to the partner is due. The disabling of a subscription does not wait for the digest, because it
 * stops deliveries. The first recovery does not wait either, so that nobody searches for a fault that has ended; if an
 * endpoint fails and recovers all the time, the later ones wait.
 */
function isTurn(rows: readonly UnmailedRow[], at: Date): boolean {
  const { settings, lastMailedAt, lastRecoveredAt } = rows[0] ?? {};
  const { digestMinutes } = settings ?? ALERT_DEFAULTS;
  const isDue = (last: Date | null | undefined) =>
    !last || addMs(last, digestMinutes * MINUTE_MS) <= at;
  const has = (kind: AlertKind) => rows.some((row) => row.kind === kind);
  return isDue(lastMailedAt) || has("disabled") || (has("recovered") && isDue(lastRecoveredAt));
}

/** Returns the confirmed recipients of the settings, or the partner's owners while there are none. */
function recipientsOf(owners: readonly PartnerRow[], settings: UnmailedRow["settings"]) {
  const [first] = owners;
  if (first === undefined) return [];
  const brand = mailBrandOf(first.brand);
  const { company } = first;
  const named = eachMailbox(settings?.recipients ?? [])
    .filter((email) => hasMailbox(settings?.confirmedRecipients ?? [], email))
    .map((email) => ({ email, name: null }));
  return (named.length > 0 ? named : owners).flatMap(({ email, name }) =>
    email === null ? [] : [{ email, name, company, ...brand }],
  );
}

export interface Recipient extends MailBrand {
  readonly email: string;
  /** The name of the recipient; null for an address that does not belong to a user. */
  readonly name: string | null;
  /** The name of the partner. */
  readonly company: string;
}

/** The fields of an alert that a mail shows. */
export type MailedAlert = Omit<
  UnmailedRow,
  "id" | "incidentId" | "partnerId" | "cause" | "settings" | "lastMailedAt" | "lastRecoveredAt"
> & { readonly cause: Cause };

interface AlertWords {
  readonly subject: string;
  readonly says: string;
  /** The advice of the mail; `DEFAULT_ADVICE` if absent. */
  readonly advice?: string;
  /** The text of the mail's link; `DEFAULT_LINK` if absent. */
  readonly link?: string;
}

const DEFAULT_LINK = "View the responses";
const DEFAULT_ADVICE =
  "Check the responses of your endpoint. The next 2xx response resets the count, and queued events are sent in order.";

function wordsOf({ kind, label, cause }: MailedAlert): AlertWords {
  const { oldest_waiting_since: oldest } = cause;
  const failuresInARow = (count: number): AlertWords => ({
    subject: `${count} consecutive failures of webhook subscription "${label}"`,
    says: `${count} consecutive webhook events could not be delivered to "${label}". After ${DISABLE_AFTER_FAILURES} the subscription is disabled.`,
  });
  const words: Readonly<Record<AlertKind, AlertWords>> = {
    head_retrying: {
      subject: `Webhook subscription "${label}" is retrying an event`,
      says: `Two attempts to deliver a webhook event to "${label}" failed. The event is sent again automatically and blocks later events. If attempt ${ATTEMPTS} of ${ATTEMPTS} fails as well, the event counts as failed and the next one is sent.`,
    },
    oldest_waiting: {
      subject: `Webhook subscription "${label}" is falling behind`,
      says: `Webhook events for "${label}" are delayed.${oldest ? ` The oldest one has been waiting since ${timeInWords(oldest)}.` : ""}`,
    },
    failures_5: failuresInARow(5),
    failures_10: failuresInARow(10),
    failures_18: failuresInARow(18),
    disabled: {
      subject: `Webhook subscription "${label}" is disabled`,
      says: `${DISABLE_AFTER_FAILURES} consecutive webhook events could not be delivered, so the subscription "${label}" was disabled and sends nothing.`,
      advice:
        "Matching events are recorded and held for up to 30 days. Fix your endpoint, then enable the subscription: held events are delivered in order.",
      link: "View the responses and enable it",
    },
    recovered: {
      subject: `Webhook subscription "${label}" has recovered`,
      says: `Your endpoint accepts webhook events of "${label}" again.`,
      advice:
        "Queued events are delivered in order. Events that failed for good are not sent again by themselves: you can resend them on the page of the subscription.",
      link: "View the deliveries",
    },
  };
  return words[kind];
}

/** Writes one mail with all alerts: the details of one subscription, or a line for each of several. */
export function alertMail(
  alerts: readonly MailedAlert[],
  { email, name, company, ...brand }: Recipient,
  options: { readonly serverRoot: string; readonly summary?: HealthSummary | undefined },
): NewMail {
  const each = [...Map.groupBy(alerts, (one) => one.subscriptionId).values()];
  const pages = `${options.serverRoot}/dashboard/webhooks`;
  const content = each.length > 1 ? ofMany(each, pages) : ofOne(alerts, pages, options.summary);
  const reason = `You get this email because you receive the webhook alerts of ${inert(company)}. Its owners choose who gets them, and which ones, on the page Alerts.`;
  return { to: email, ...brandedMail({ name, reason, ...content }, brand), kind: "webhook_alert" };
}

function ofOne(alerts: readonly MailedAlert[], pages: string, summary: HealthSummary | undefined) {
  const { lead, earlier } = leadOf(alerts);
  const { webhookUrl, cause, subscriptionId, kind } = lead;
  const { subject, says, advice = DEFAULT_ADVICE, link = DEFAULT_LINK } = wordsOf(lead);
  const { first_failure: first, last_failure: last, oldest_waiting_since: oldest } = cause;
  const isLost = (cause.consecutive_failure_count ?? 0) > 0;
  const tls = kind === "recovered" ? undefined : tlsWords(last?.tls_reason);
  const facts = [
    ["Endpoint", webhookUrl],
    ["Condition", summary && kind !== "recovered" ? conditionInWords(summary) : undefined],
    ...timesOf(kind, summary),
    [
      isLost ? "First event that failed for good" : "First failure",
      first && failureInWords(first, first.event_id !== last?.event_id),
    ],
    ["Last failure", last && failureInWords(last, true)],
    ...(summary && kind !== "recovered" ? [nextAttemptOf(summary)] : []),
    ...(summary ? [queueOf(summary)] : []),
    ["Oldest event", kind === "recovered" || !oldest ? undefined : timeInWords(oldest)],
    ["Earlier alerts", earlier.map((one) => wordsOf(one).subject).join("; ")],
  ] as const;
  return {
    subject,
    paragraphs: [says, ...(tls ? [`${tls.title}. ${tls.advice}`] : []), advice],
    details: facts.flatMap(([fact, value]) => (value ? [[fact, value] as const] : [])),
    link: { words: link, href: `${pages}/${subscriptionId}` },
  };
}

/** Returns the time of the next attempt of the event that waits for a retry. */
function nextAttemptOf({ retry }: HealthSummary) {
  const words = retry && `${utcTime(retry.dueAt)}, attempt ${retry.attempts + 1} of ${ATTEMPTS}`;
  return ["Next attempt", words] as const;
}

/** Returns the number of queued events under the name that they have on the subscription's page. */
const queueOf = ({ condition, queued }: HealthSummary) =>
  [
    condition === null ? "Held events" : "Queued events",
    queued === 0 ? undefined : queued.toLocaleString("en"),
  ] as const;

/** Returns the beginning and the end of an incident as the subscription's page shows them. */
function timesOf(kind: AlertKind, summary: HealthSummary | undefined) {
  const { since, endedAt } = summary ?? {};
  const began = since && timeInWords(isoInstant(since));
  if (kind !== "recovered") return [["Failing since", began]] as const;
  return [
    ["Began", began],
    ["Recovered", endedAt ? timeInWords(isoInstant(endedAt)) : undefined],
  ] as const;
}

function ofMany(each: readonly (readonly MailedAlert[])[], pages: string) {
  const leads = each.map((alerts) => leadOf(alerts).lead);
  return {
    subject: `Alerts for ${each.length} webhook subscriptions`,
    paragraphs: [`There are alerts for ${each.length} webhook subscriptions:`],
    facts: leads.map((lead) => [lead.label, wordsOf(lead).says] as const),
    link: { words: "View the subscriptions", href: pages },
  };
}

/** Returns the gravest of the latest alerts, and the other alerts by time and gravity, the earliest first. */
function leadOf<Alert extends MailedAlert>(alerts: readonly Alert[]) {
  const [lead, ...others] = alerts.toSorted(
    (a, b) => b.raisedAt.getTime() - a.raisedAt.getTime() || gravity(b) - gravity(a),
  );
  if (lead === undefined) throw new Error("A mail needs at least one alert.");
  return { lead, earlier: others.toReversed() };
}

const gravity = ({ kind }: MailedAlert) => TROUBLE_KINDS.findIndex((one) => one === kind);

/** Formats the condition and the rate of the last hour as the page shows them. */
function conditionInWords({ condition, successRate1h: rate, retry }: HealthSummary): string {
  if (condition === null) return "Disabled";
  const state = condition === "healthy" && retry !== undefined ? "retrying" : condition;
  const word = `${state.charAt(0).toUpperCase()}${state.slice(1)}`;
  return rate === null
    ? word
    : `${word}, with a success rate of ${percentOf(rate)}% in the last hour`;
}

/** Formats the stored instant of a cause. */
function timeInWords(instant: string): string {
  const at = parseInstant(instant);
  return at === undefined ? instant : utcTime(at);
}

/** Describes a failed attempt, with its event unless another line of the mail names the same one. */
function failureInWords(failure: NonNullable<Cause["first_failure"]>, hasEvent: boolean): string {
  const { at, status_code: status, error_code: error, event, event_id: id } = failure;
  const cause = tlsWords(failure.tls_reason)?.title ?? error ?? "unknown";
  const answer = status === null ? `no response (${cause})` : `HTTP ${status}`;
  const words = `${timeInWords(at)}, ${answer}`;
  return hasEvent ? `${words}, ${event} ${id}` : words;
}
