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
