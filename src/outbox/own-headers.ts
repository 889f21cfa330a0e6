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
const HIDDEN_VALUE = "(hidden)";
/** The length in characters from which a text is replaced in responses; shorter ones occur by chance. */
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

/**
 * Returns a function that replaces the values of the headers, and credentials without their scheme such as `Bearer`, in
 * texts of the receiver, which may repeat the request. A text that is cut (`isCut`) may end within a value.
 */
export function hiding(headers: OwnHeaders): (text: string, isCut?: boolean) => string {
  const secrets = Object.values(headers)
    .flatMap((value) => [value, value.replace(/^\S+\s+/, "")])
    .filter((secret) => secret.length >= MIN_HIDDEN_CHARS)
    // The longest one comes first, because it may contain another one.
    .toSorted((a, b) => b.length - a.length);
  return (text, isCut = false) =>
    secrets.reduce((shown, secret) => {
      const rest = shown.replaceAll(secret, HIDDEN_VALUE);
      return isCut ? hideAtEnd(rest, secret) : rest;
    }, text);
}

function hideAtEnd(text: string, secret: string): string {
  for (let chars = secret.length - 1; chars >= MIN_HIDDEN_CHARS; chars--)
    if (text.endsWith(secret.slice(0, chars))) return text.slice(0, -chars) + HIDDEN_VALUE;
  return text;
}
