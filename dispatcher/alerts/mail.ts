import type { Tx } from "../../db/client.ts";
import { waitForTurn } from "../../db/server.ts";
import { addMs } from "../../src/lib/clock.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import {
  ALERT_DEFAULTS,
  type AlertKind,
  type NewMail,
  queueMails,
  TROUBLE_KINDS,
} from "../../src/outbox/mail.ts";
import { brandedMail, type MailBrand } from "../../src/lib/branded-mail.ts";
import { DISABLE_AFTER_FAILURES } from "../actor/decide.ts";
import type { Cause } from "./incidents.ts";
import * as queries from "./queries.ts";
import type { PartnerRow, UnmailedRow } from "./queries.ts";

const MINUTE_MS = 60_000;

/** Queues one mail with all pending alerts to each recipient of the partners with a due digest. */
export async function mailAlerts(
  tx: Tx,
  deps: { readonly box: SecretBox; readonly config: { readonly serverRoot: string } },
  { partnerIds, at }: { readonly partnerIds: readonly number[]; readonly at: Date },
): Promise<boolean> {
  // The lock keeps two processes from mailing the same alerts.
  await waitForTurn(tx, "alerts");
  const unmailed = await queries.unmailedAlerts(tx, partnerIds);
  const turns = Map.groupBy(unmailed, (one) => one.partnerId)
    .values()
    .filter((rows) => isTurn(rows, at))
    .toArray();
  if (turns.length === 0) return false;
  const partners = Map.groupBy(await queries.partnersOf(tx, partnerIds), ({ id }) => id);
  const mails = turns.flatMap((rows) => {
    // Only `raiseAlerts` writes causes, so each has this shape.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const alerts = rows.map((row) => ({ ...row, cause: row.cause as Cause }));
    const [{ partnerId, settings } = {}] = rows;
    const owners = partners.get(partnerId ?? 0) ?? [];
    return recipientsOf(owners, settings).map((to) => alertMail(alerts, to, deps.config));
  });
  await queries.markMailed(
    tx,
    turns.flat().map(({ id }) => id),
    at,
  );
  await queueMails(tx, deps, mails, at);
  return mails.length > 0;
}

/**
 * Whether a mail to the partner is due. The disabling of a subscription does not wait for the digest, because it
 * stops deliveries.
 */
function isTurn(rows: readonly UnmailedRow[], at: Date): boolean {
  const { settings, lastMailedAt } = rows[0] ?? {};
  const { digestMinutes } = settings ?? ALERT_DEFAULTS;
  const isDue = !lastMailedAt || addMs(lastMailedAt, digestMinutes * MINUTE_MS) <= at;
  return isDue || rows.some((row) => row.kind === "disabled");
}

/** Returns the confirmed recipients of the settings, or the partner's owners while there are none. */
function recipientsOf(
  owners: readonly PartnerRow[],
  settings: UnmailedRow["settings"] | undefined,
): readonly Recipient[] {
  const [first] = owners;
  if (first === undefined) return [];
  const { whiteLabelEnabled, brandName, primaryColor } = first;
  const { recipients, confirmedRecipients } = settings ?? { recipients: null };
  const named = recipients
    ?.filter((email) => confirmedRecipients.includes(email))
    .map((email) => ({ email, name: null }));
  return (named?.length ? named : owners).flatMap(({ email, name }) =>
    email === null
      ? []
      : [{ email, name, brand: whiteLabelEnabled ? brandName : null, primaryColor }],
  );
}

export interface Recipient extends MailBrand {
  readonly email: string;
  /** The name of the recipient; null for an address that does not belong to a user. */
  readonly name: string | null;
}

/** The fields of an alert that a mail shows. */
export type MailedAlert = Omit<
  UnmailedRow,
  "id" | "partnerId" | "cause" | "settings" | "lastMailedAt"
> & { readonly cause: Cause };

interface Words {
  readonly subject: (label: string) => string;
  readonly says: (alert: MailedAlert) => string;
  /** The advice of the mail; `REMEDY` if absent. */
  readonly advice?: string;
  /** The text of the mail's link; `LOOK` if absent. */
  readonly link?: string;
}

const LOOK = "See what was answered";
const REMEDY =
  "Look at what your endpoint answers. Any 2xx status ends the count, and what waits follows in order.";

const failuresInARow = (count: number): Words => ({
  subject: (label) => `${count} failures in a row at webhook subscription "${label}"`,
  says: ({ label }) =>
    `${count} webhook events in a row could not be delivered to "${label}". At ${DISABLE_AFTER_FAILURES} the subscription is disabled.`,
});

const WORDS: Readonly<Record<AlertKind, Words>> = {
  head_retrying: {
    subject: (label) => `Webhook subscription "${label}" waits for a retry`,
    says: ({ label }) =>
      `A webhook event could not be delivered to "${label}" twice in a row. It waits for its next attempt, and the events behind it wait, too.`,
  },
  oldest_waiting: {
    subject: (label) => `Webhook subscription "${label}" is falling behind`,
    says: ({ label, cause }) =>
      `Webhook events for "${label}" wait longer than they should: the oldest one since ${cause.oldest_waiting_since ? timeInWords(cause.oldest_waiting_since) : "a while"}.`,
  },
  failures_5: failuresInARow(5),
  failures_10: failuresInARow(10),
  failures_18: failuresInARow(18),
  disabled: {
    subject: (label) => `Webhook subscription "${label}" is disabled`,
    says: ({ label }) =>
      `${DISABLE_AFTER_FAILURES} webhook events in a row could not be delivered, so the subscription "${label}" is disabled and sends nothing.`,
    advice:
      "Nothing is lost: matching events are recorded and held, for up to 30 days. Once your endpoint answers with a 2xx status again, enable the subscription, and they are delivered in order.",
    link: "See what was answered, and enable it",
  },
  recovered: {
    subject: (label) => `Webhook subscription "${label}" has recovered`,
    says: ({ label }) => `Your endpoint takes webhook events of "${label}" again.`,
    advice: "You need not do anything. What waited is delivered in order.",
    link: "See the deliveries",
  },
};

/** Writes one mail with all alerts: the details of one subscription, or a line for each of several. */
export function alertMail(
  alerts: readonly MailedAlert[],
  { email, name, ...brand }: Recipient,
  { serverRoot }: { readonly serverRoot: string },
): NewMail {
  const bySubscription = Map.groupBy(alerts, (one) => one.subscriptionId);
  const greeting = name === null ? "Hello," : `Hello ${name},`;
  const pages = `${serverRoot}/dashboard/webhooks`;
  const [only] = bySubscription.values();
  const content =
    bySubscription.size === 1 && only !== undefined
      ? ofOne(only, pages)
      : ofMany([...bySubscription.values()], pages);
  return { to: email, ...brandedMail({ greeting, ...content }, brand), kind: "webhook_alert" };
}

function ofOne(alerts: readonly MailedAlert[], pages: string) {
  const lead = leadOf(alerts);
  const { label, webhookUrl, cause, subscriptionId, kind } = lead;
  const { subject, says, advice = REMEDY, link = LOOK } = WORDS[kind];
  const before = alerts
    .filter((one) => one !== lead)
    .toSorted((a, b) => byTime(a, b) || gravity(a) - gravity(b));
  const { first_failure: first, last_failure: last, oldest_waiting_since: oldest } = cause;
  const facts = [
    ["Endpoint", webhookUrl],
    ["First failure", inWords(first)],
    ["Last failure", inWords(last)],
    ["Oldest event", kind === "recovered" || !oldest ? undefined : timeInWords(oldest)],
    ["Told with it", before.map((one) => WORDS[one.kind].subject(label)).join("; ")],
  ] as const;
  return {
    subject: subject(label),
    paragraphs: [says(lead), advice],
    facts: facts.flatMap(([fact, value]) => (value ? [[fact, value] as const] : [])),
    link: { words: link, href: `${pages}/${subscriptionId}` },
  };
}

function ofMany(each: readonly (readonly MailedAlert[])[], pages: string) {
  return {
    subject: `News of ${each.length} webhook subscriptions`,
    paragraphs: [`There is news of ${each.length} webhook subscriptions:`],
    facts: each.map((alerts) => {
      const lead = leadOf(alerts);
      return [lead.label, WORDS[lead.kind].says(lead)] as const;
    }),
    link: { words: "See the subscriptions", href: pages },
  };
}

/** Returns the gravest of the latest alerts. */
function leadOf(alerts: readonly MailedAlert[]): MailedAlert {
  const [lead] = alerts.toSorted((a, b) => byTime(b, a) || gravity(b) - gravity(a));
  if (lead === undefined) throw new Error("There is no alert to tell.");
  return lead;
}

const byTime = (a: MailedAlert, b: MailedAlert) => a.raisedAt.getTime() - b.raisedAt.getTime();
const gravity = ({ kind }: MailedAlert) => TROUBLE_KINDS.findIndex((one) => one === kind);

/** Formats an instant as text in UTC; its offset is always zero. */
const timeInWords = (instant: string) => `${instant.slice(0, 19).replace("T", " ")} UTC`;

function inWords(failure: Cause["first_failure"]): string | undefined {
  if (!failure) return undefined;
  const { at, status_code: status, error_code: error, event, event_id: id } = failure;
  const answer =
    status === null ? `no answer (${error ?? "unknown"})` : `answered with status ${status}`;
  return `${timeInWords(at)}, ${answer}, ${event} ${id}`;
}
