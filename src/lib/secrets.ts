import { createHash, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;

/** 256 random bits as 64 lowercase hex characters: webhook secrets, client secrets, provider secrets. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("hex");
}

/**
 * What is stored of a secret that only ever has to be compared, such as an OAuth client's. A plain SHA-256 is enough
 * for 256 random bits: nobody guesses them, however fast the hash. Passwords take argon2id.
 */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** HMAC-SHA256 in hex digits, of a text its UTF-8. node:crypto makes a stream of each: dearer, and more to collect. */
export function hmacSha256Hex(key: string, data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key).update(data).digest("hex");
}

/** SHA-256 in hex digits, of the UTF-8 of a text: in one call, which costs less than feeding a hasher. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}
