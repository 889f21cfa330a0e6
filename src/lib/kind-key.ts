import { createHash } from "node:crypto";

/**
 * The kinds of things that are locked, limited, counted or remembered under a key, and the parts of such a key. A key has a
 * kind of this list, so that no value that somebody types or sends is the key of a thing of another kind.
 */
export const KEY_KINDS = {
  // Buckets of the rate limiter in Redis, and open streams of a process.
  user: ["user"],
  ip: ["network"],
  signIn: ["network"],
  portal: ["session"],
  portals: ["maker"],
  "people-of": ["partner"],
  "portals-of": ["partner"],
  // What a process remembers about the items of a request or a batch, and about uses of tokens.
  review: ["site", "external id"],
  provider: ["slug"],
  "provider-site": ["slug", "site"],
  "provider-event": ["slug", "id"],
  action: ["service", "id"],
  "token-use": ["token", "address", "route"],
  // Addresses of receivers that a dispatcher could not connect to.
  receiver: ["origin", "address"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type KeyKind = keyof typeof KEY_KINDS;

declare const kindOfKey: unique symbol;
/** A key of one of these kinds. No plain text is a key: `keyOf` makes it. */
export type Key<K extends KeyKind> = string & { readonly [kindOfKey]: K };

type Part = string | number;
type PartsNamed<Names extends readonly string[]> = { readonly [I in keyof Names]: Part };

/**
 * Makes the key of a thing. A colon ends the kind and each part but the last, and is escaped within them, so that different
 * things have different keys whatever their parts contain.
 */
export function keyOf<K extends KeyKind>(
  kind: K,
  ...parts: PartsNamed<(typeof KEY_KINDS)[K]>
): Key<K> {
  let key: string = kind;
  for (const [i, part] of parts.entries()) key += `:${i < parts.length - 1 ? escaped(part) : part}`;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this function makes keys.
  return key as Key<K>;
}

function escaped(part: Part): Part {
  return typeof part === "string" && (part.includes(":") || part.includes("%"))
    ? part.replaceAll("%", "%25").replaceAll(":", "%3A")
    : part;
}

/**
 * The kinds of values of which a table stores the digest: counters of emails and of users. Most values are what somebody
 * typed, perhaps a password in the wrong field.
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
/** The digest of a value of one of these kinds. No plain text is a digest: `digestOf` makes it. */
export type Digest<K extends DigestKind = DigestKind> = string & { readonly [kindOfDigest]: K };

/**
 * Makes the digest of a value. A NUL ends the kind. Emails have no kind in front, as in 0.1.0, whose processes share these
 * rows during an upgrade; so an email must not contain a NUL, and a NUL in it is replaced as `spellingOf` does.
 */
export function digestOf<K extends DigestKind>(kind: K, value: string | number): Digest<K> {
  const text = kind === "email" ? String(value).replaceAll("\0", "\uFFFD") : `${kind}\0${value}`;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this function makes digests.
  return createHash("sha256").update(text).digest("hex") as Digest<K>;
}
