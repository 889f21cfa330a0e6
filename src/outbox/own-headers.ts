import type { SecretBox } from "../lib/secrets.ts";

/** The headers that a partner adds to the POSTs of a subscription, with their values (contract 6.22). */
export type OwnHeaders = Readonly<Record<string, string>>;

interface OfSubscription {
  readonly id: string;
  readonly partnerId: number;
}

/**
 * Returns the associated data of the headers of a subscription. It differs from that of the secret, so that neither can
 * be stored in the place of the other.
 */
export function ownHeadersAssociatedData({ partnerId, id }: OfSubscription): string {
  return `webhook-headers:${partnerId}:${id}`;
}

/** Seals the headers of a subscription; null without headers. */
export function sealHeaders(
  box: Pick<SecretBox, "seal">,
  subscription: OfSubscription,
  headers: OwnHeaders | null | undefined,
): string | null {
  if (headers == null || Object.keys(headers).length === 0) return null;
  return box.seal(JSON.stringify(headers), ownHeadersAssociatedData(subscription));
}

/** Opens the sealed headers of a subscription; null without headers. Throws if no master key opens them. */
export function openHeaders(
  box: Pick<SecretBox, "open">,
  subscription: OfSubscription,
  sealed: string | null,
): OwnHeaders | null {
  if (sealed === null) return null;
  // Only `sealHeaders` seals with these associated data, so the cast is safe.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealed, ownHeadersAssociatedData(subscription))) as OwnHeaders;
}

/** The text that is recorded and shown instead of a value (contract 7.13). */
export const HIDDEN_VALUE = "(hidden)";
/** The length in characters from which a value is replaced in responses; shorter ones occur by chance. */
const MIN_HIDDEN_CHARS = 8;

/** Joins the names of the headers into the form in which an attempt stores them; null without headers. */
export function headerNamesOf(headers: OwnHeaders | null): string | null {
  return headers && Object.keys(headers).join();
}

/** Builds the headers that the API shows for the stored names of an attempt; none for null. */
export function hiddenHeaders(names: string | null): OwnHeaders {
  const given = names?.split(",") ?? [];
  return Object.fromEntries(given.map((name) => [name, HIDDEN_VALUE]));
}

/** Replaces whole values of the headers in a text of the receiver, which may repeat the request. */
export function hideIn(text: string, headers: OwnHeaders): string {
  const values = Object.values(headers).filter((value) => value.length >= MIN_HIDDEN_CHARS);
  // The longest value comes first, because it may contain another one.
  return values
    .toSorted((a, b) => b.length - a.length)
    .reduce((shown, value) => shown.replaceAll(value, HIDDEN_VALUE), text);
}
