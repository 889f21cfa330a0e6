import type { Tx } from "../../db/client.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { queueMail } from "../../src/outbox/mail.ts";
import { DISABLE_AFTER_FAILURES } from "../actor/decide.ts";
import { ownersOf } from "./queries.ts";

/** Queues one mail per owner for each subscription that was just disabled (contract 7.9). */
export async function mailOwners(
  tx: Tx,
  deps: { readonly box: SecretBox },
  disabled: readonly string[],
  now: Date,
): Promise<void> {
  if (disabled.length === 0) return;
  for (const { email, label, webhookUrl } of await ownersOf(tx, disabled)) {
    const text = [
      `${DISABLE_AFTER_FAILURES} webhook events in a row could not be delivered to`,
      "",
      `    ${webhookUrl}`,
      "",
      `so the subscription "${label}" is disabled. Nothing is lost: matching events are recorded and held. Once your`,
      "endpoint answers with a 2xx status again, enable the subscription, and they are delivered in order.",
    ].join("\n");
    const subject = `Webhook subscription "${label}" is disabled`;
    await queueMail(tx, deps, { kind: "subscription_disabled", to: email, subject, text }, now);
  }
}
