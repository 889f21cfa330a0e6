import { requestHeaders } from "../../src/outbox/composer.ts";
import type { SendableEntry, Subscription } from "../actor/entry.ts";
import type { DeliveryRequest } from "./deliver.ts";
import { composeBody } from "./envelope.ts";
import { signBody } from "./signature.ts";

/** A request with what its record keeps of it. */
export interface SignedRequest extends DeliveryRequest {
  readonly body: string;
  /** Hex digits. */
  readonly signature: string;
  readonly previousSignature: string | null;
}

/** Every test carries it, also one that looks like another event (contract 6.12). */
const TEST_MARK = { "X-SVC-Test": "1" };

/** The signed POST of one attempt (contract 7.1). During the grace period of a rotation it carries both signatures. */
export function composeRequest(
  { source, payloadMode, event, eventId, attempt }: SendableEntry,
  { webhookUrl, secret, previousSecret }: Subscription,
  deliveredAt: Date,
): SignedRequest {
  const body = composeBody(source, payloadMode, deliveredAt);
  const signature = signBody(secret, body);
  const previousSignature = previousSecret === null ? null : signBody(previousSecret, body);
  const own = requestHeaders({ event, eventId, attempt, signature, previousSignature });
  const headers = source.kind === "test" ? { ...own, ...TEST_MARK } : own;
  return { url: webhookUrl, body, headers, signature, previousSignature };
}
