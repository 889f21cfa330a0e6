import type { Tx } from "../../db/client.ts";
import { planWalks } from "../../db/planning.ts";
import { isoInstant } from "../../src/lib/clock.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { brandedMail } from "../../src/outbox/branded-mail.ts";
import { queueMails, type NewMail } from "../../src/outbox/mail.ts";
import { DISABLE_AFTER_FAILURES } from "../actor/decide.ts";
import { failuresOf, ownersOf, type Failure, type OwnerRow } from "./queries.ts";

interface MailDeps {
  readonly box: SecretBox;
  readonly config: { readonly serverRoot: string };
}

/** Queues one mail per owner for each subscription that was just disabled (contract 7.9). */
export async function mailOwners(
  tx: Tx,
  deps: MailDeps,
  disabled: readonly string[],
  now: Date,
): Promise<void> {
  if (disabled.length === 0) return;
  const bySubscription = Map.groupBy(await ownersOf(tx, disabled), (one) => one.subscriptionId);
  const mails: NewMail[] = [];
  await planWalks(tx);
  for (const [id, owners] of bySubscription) {
    const failures = await failuresOf(tx, id, DISABLE_AFTER_FAILURES);
    mails.push(...owners.map((owner) => disableMail(owner, failures, deps.config)));
  }
  await queueMails(tx, deps, mails, now);
}

/** Says what was disabled and why, since when, and where to enable it. `failures` are the newest first. */
export function disableMail(
  { subscriptionId, name, email, label, webhookUrl, ...brand }: OwnerRow,
  failures: readonly Failure[],
  { serverRoot }: MailDeps["config"],
): NewMail {
  const first = failures.at(-1);
  const last = failures[0];
  const content = {
    subject: `Webhook subscription "${label}" is disabled`,
    greeting: `Hello ${name},`,
    paragraphs: [
      `${DISABLE_AFTER_FAILURES} webhook events in a row could not be delivered, so the subscription "${label}" is disabled and sends nothing.`,
      "Nothing is lost: matching events are recorded and held, for up to 30 days. Once your endpoint answers with a 2xx status again, enable the subscription, and they are delivered in order.",
    ],
    facts: [
      ["Endpoint", webhookUrl],
      ...(first === undefined ? [] : [["First failure", inWords(first)] as const]),
      ...(last === undefined ? [] : [["Last failure", inWords(last)] as const]),
    ] as const,
    link: {
      words: "See what was answered, and enable it",
      href: `${serverRoot}/dashboard/webhooks/${subscriptionId}`,
    },
  };
  return { to: email, ...brandedMail(content, brand), kind: "subscription_disabled" };
}

function inWords({ at, eventId, event, statusCode, errorCode }: Failure): string {
  const cause =
    statusCode === null
      ? `no answer (${errorCode ?? "unknown"})`
      : `answered with status ${statusCode}`;
  return `${isoInstant(at)}, ${cause}, ${event} ${eventId}`;
}
