import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

import { memoize } from "./memoize.ts";

const SECRET_BYTES = 32;

/** Returns 256 random bits as 64 lowercase hex characters, for webhook, client and provider secrets. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("hex");
}

/**
 * Hashes a secret that is only compared, such as the secret of an OAuth client. A plain SHA-256 is enough for 256
 * random bits, because they cannot be guessed, however fast the hash is. Passwords use argon2id instead.
 */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/**
 * Computes an HMAC-SHA256 in hex digits; text is hashed as UTF-8. Bun's hasher is used, because node:crypto would
 * create a stream for each call, which costs time and memory.
 */
export function hmacSha256Hex(key: string, data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key).update(data).digest("hex");
}

/**
 * Returns a signing secret in the form that libraries of Standard Webhooks expect: `whsec_` and the base64 of the key.
 * The key is the UTF-8 of the secret's text (contract 6.6).
 */
export function standardSecret(secret: string): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

/** Computes the SHA-256 of the UTF-8 of a text, in hex digits. The static function is faster than a hasher object. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}

const VERSION = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts stored secrets with AES-256-GCM. `associatedData` binds a ciphertext to its row, so that it cannot be
 * decrypted in another row.
 */
export interface SecretBox {
  /** Ids of the available keys, as they occur in sealed values. The first key seals new values. */
  readonly keyIds: readonly string[];
  /** Encrypts a text. Returns `v1.<key id>.<base64url of iv, ciphertext and tag>`. */
  seal(plaintext: string, associatedData: string): string;
  /**
   * Decrypts a sealed text. Throws if the key is unknown, or if the text or the associated data differ from those
   * that were sealed.
   */
  open(sealed: string, associatedData: string): string;
  /** Returns whether the text was sealed with the current key; otherwise `rotate-master` must seal it again. */
  isCurrent(sealed: string): boolean;
  /** Returns whether the text was sealed with one of the available keys. */
  isKnown(sealed: string): boolean;
}

/**
 * Creates a box that seals with `current` and also opens values that were sealed with `previous` (contract 6.6). Keys
 * have 32 bytes.
 */
export function createSecretBox(keys: {
  current: Uint8Array;
  previous?: Uint8Array | undefined;
}): SecretBox {
  const current = { id: keyId(keys.current), key: keys.current };
  const known = new Map([[current.id, current.key]]);
  if (keys.previous) known.set(keyId(keys.previous), keys.previous);
  return {
    keyIds: [...known.keys()],
    seal(plaintext, associatedData) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", current.key, iv).setAAD(
        Buffer.from(associatedData),
      );
      const text = Buffer.concat([
        iv,
        cipher.update(plaintext, "utf8"),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      return `${VERSION}.${current.id}.${text.toString("base64url")}`;
    },
    open(sealed, associatedData) {
      const [version, id = "", text = ""] = sealed.split(".");
      const key = known.get(id);
      if (version !== VERSION || key === undefined)
        throw new Error(
          `No master key decrypts this secret (key id ${id}); set MASTER_KEY or MASTER_KEY_PREVIOUS to the key that sealed it.`,
        );
      const bytes = Buffer.from(text, "base64url");
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES)).setAAD(
        Buffer.from(associatedData),
      );
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      return (
        decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") +
        decipher.final("utf8")
      );
    },
    isCurrent: (sealed) => sealed.startsWith(`${VERSION}.${current.id}.`),
    isKnown: (sealed) => known.has(sealed.split(".")[1] ?? ""),
  };
}

/** Maximum number of opened texts that `openingOnce` caches by default, which are a few megabytes of secrets. */
const MAX_OPENED = 10_000;

/**
 * Returns the function `open` of a box with a cache of opened texts. It is for secrets that every event needs, because
 * opening one takes 5 of the 150 µs that a process spends on an event.
 */
export function openingOnce(box: Pick<SecretBox, "open">, limit = MAX_OPENED): SecretBox["open"] {
  // A sealed text contains no line break, so a line break separates it from the associated data.
  const open = memoize((key: string) => {
    const end = key.indexOf("\n");
    return box.open(key.slice(0, end), key.slice(end + 1));
  }, limit);
  return (sealed, associatedData) => open(`${sealed}\n${associatedData}`);
}

/**
 * Returns the first 8 bytes of the SHA-256 as 16 hex digits. That is enough to distinguish two secrets, and too little
 * to guess one.
 */
export function fingerprint(secret: string | Uint8Array): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 16);
}

function keyId(key: Uint8Array): string {
  return fingerprint(key).slice(0, 8);
}

/** Compares two strings in a time that depends only on their lengths. */
export function equalInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(sha256(a), sha256(b));
}

const sha256 = (text: string) => Bun.CryptoHasher.hash("sha256", text);
