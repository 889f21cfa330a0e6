import { createHash, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;

/** Returns 256 random bits as 64 lowercase hex characters, for webhook, client and provider secrets. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("hex");
}

/**
 * Hashes a secret that is only ever compared, such as an OAuth client's. A plain SHA-256 is enough for 256 random
 * bits, because they cannot be guessed however fast the hash is. Passwords use argon2id instead.
 */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/**
 * Computes an HMAC-SHA256 in hex digits; text is hashed as UTF-8. node:crypto would create a stream for each call,
 * which costs more time and garbage.
 */
export function hmacSha256Hex(key: string, data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key).update(data).digest("hex");
}

/**
 * Shows a signing secret as libraries of Standard Webhooks take it: `whsec_` and the base64 of the key, which is the
 * UTF-8 of the secret's text (contract 6.6).
 */
export function standardSecret(secret: string): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

/** Computes the SHA-256 of the UTF-8 text in hex digits. One static call costs less than feeding a hasher. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}
