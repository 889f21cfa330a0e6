import { composeBody } from "./envelope.ts";
import type { DeliveryRequest } from "./deliver.ts";
import type { Entry, Subscription } from "../actor/entry.ts";
import { signBody } from "./signature.ts";

const USER_AGENT = "ReviewRelay/1.0 (webhooks)";

/** The signed POST of one attempt (contract 7.1). During the grace period of a rotation it carries both signatures. */
export function composeRequest(
  entry: Entry,
  subscription: Subscription,
  deliveredAt: Date,
): DeliveryRequest & { readonly body: string } {
  const body = composeBody(entry.source, entry.payloadMode, deliveredAt);
  const previous = subscription.previousSecret;
  return {
    url: subscription.webhookUrl,
    body,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": USER_AGENT,
      "X-SVC-Event": entry.event,
      "X-SVC-Delivery": entry.eventId,
      "X-SVC-Attempt": String(entry.attempt),
      "X-SVC-Signature": signBody(subscription.secret, body),
      ...(previous !== null && { "X-SVC-Signature-Previous": signBody(previous, body) }),
    },
  };
}
