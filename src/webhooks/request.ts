import { composerOf, digestOf, framed } from "../outbox/composer.ts";
import type { EventFacts } from "../outbox/event.ts";
import type { Headers } from "./delivery-model.ts";

/** What an attempt keeps of its request: the request itself, or what it is composed from again. */
export interface KeptRequest {
  readonly event: string;
  readonly eventId: string;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly requestHeaders: Headers | null;
  readonly requestBody: string | null;
  readonly composer: number | null;
  readonly host: string | null;
  readonly signature: Uint8Array | null;
  readonly previousSignature: Uint8Array | null;
  readonly bodyDigest: Uint8Array | null;
}

export type ShownRequest = Pick<KeptRequest, "requestHeaders" | "requestBody">;

const LOST: ShownRequest = { requestHeaders: null, requestBody: null };

/**
 * The exact headers and body of an attempt (contract 7.13). Lost is what the digest does not prove: other bytes than
 * those that were sent are never shown.
 */
export function requestOf(kept: KeptRequest, facts: EventFacts | undefined): ShownRequest {
  const { composer: number, host, signature, previousSignature, bodyDigest } = kept;
  const { requestHeaders, requestBody } = kept;
  if (number === null) return { requestHeaders, requestBody };
  const composer = composerOf(number);
  if (composer === undefined || facts === undefined) return LOST;
  if (host === null || signature === null || bodyDigest === null) return LOST;
  const body = composer.body(facts, kept.startedAt);
  if (digestOf(body) !== hexOf(bodyDigest)) return LOST;
  const headers = composer.headers({
    event: kept.event,
    eventId: kept.eventId,
    attempt: kept.attempt,
    signature: hexOf(signature),
    previousSignature: previousSignature === null ? null : hexOf(previousSignature),
  });
  return { requestHeaders: framed(host, headers, body), requestBody: body };
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
