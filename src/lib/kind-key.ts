import { createHash } from "node:crypto";

/**
 * The kinds of keys, and the parts of a key of each kind. Such keys identify things that are locked, limited, counted
 * or cached. Each key contains its kind, so that no value from a request can imitate the key of another kind.
 */
export const KEY_KINDS = {
  // Buckets of the rate limiter in Redis, and open event streams of a process.
  user: ["user"],
  ip: ["network"],
  signIn: ["network"],
  portal: ["session"],
  portals: ["maker"],
  "people-of": ["partner"],
  "portals-of": ["partner"],
  // Values that a process stores about the items of a request or a batch, and about uses of tokens.
  review: ["site", "external id"],
  provider: ["slug"],
  "provider-site": ["slug", "site"],
  "provider-event": ["slug", "id"],
  action: ["service", "id"],
  "token-use": ["token", "address", "route"],
  // Addresses of receivers to which a dispatcher could not connect.
  receiver: ["origin", "address"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type KeyKind = keyof typeof KEY_KINDS;

declare const kindOfKey: unique symbol;
/** A key of one of these kinds. Plain text does not have this type; only `keyOf` creates it. */
export type Key<K extends KeyKind> = string & { readonly [kindOfKey]: K };

type Part = string | number;
type PartsNamed<Names extends readonly string[]> = { readonly [I in keyof Names]: Part };

/**
 * Builds the key of a thing. A colon ends the kind and each part except the last, and is escaped inside these parts. So
 * different things have different keys, whatever their parts contain.
 */
export function keyOf<K extends KeyKind>(
  kind: K,
  ...parts: PartsNamed<(typeof KEY_KINDS)[K]>
): Key<K> {
  let key: string = kind;
  let left = parts.length;
  for (const part of parts) {
    left -= 1;
    key += `:${left > 0 ? escaped(part) : part}`;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this function makes keys.
  return key as Key<K>;
}

function escaped(part: Part): Part {
  return typeof part === "string" && (part.includes(":") || part.includes("%"))
    ? part.replaceAll("%", "%25").replaceAll(":", "%3A")
    : part;
}

/**
 * The kinds of values that a table stores as digests: counters of emails and of users. They are hashed because most
 * values are typed text, which may be a password in the wrong field.
 */
export const DIGEST_KINDS = [
  "email",
  "second-factor",
  "mails",
  "invitations",
  "forgot_password",
  "forgot_password known",
  "change_password",
  "change_password known",
  "signup",
  "signup known",
] as const;
export type DigestKind = (typeof DIGEST_KINDS)[number];

declare const kindOfDigest: unique symbol;
/** The digest of a value of one of these kinds. Plain text does not have this type; only `digestOf` creates it. */
export type Digest<K extends DigestKind = DigestKind> = string & { readonly [kindOfDigest]: K };

/**
 * Computes the digest of a value. The kind precedes the value and ends with a NUL. Digests of emails contain no kind,
 * for compatibility with release 0.1.0, whose processes share these rows during an upgrade. A NUL in an email would
 * imitate a kind, so it is replaced, as in `spellingOf`.
 */
export function digestOf<K extends DigestKind>(kind: K, value: string | number): Digest<K> {
  const text = kind === "email" ? String(value).replaceAll("\0", "\uFFFD") : `${kind}\0${value}`;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this function makes digests.
  return createHash("sha256").update(text).digest("hex") as Digest<K>;
}
