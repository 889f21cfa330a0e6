import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

const VERSION = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Seals stored secrets with AES-256-GCM. `associatedData` ties a ciphertext to its row: moved to another row it does not open. */
export interface SecretBox {
  /** The ids of the keys at hand, as they stand in sealed values; the first one seals. */
  readonly keyIds: readonly string[];
  /** `v1.<key id>.<base64url of iv, ciphertext and tag>` */
  seal(plaintext: string, associatedData: string): string;
  /** Throws if the key is not known, or the text or its context is not the one sealed. */
  open(sealed: string, associatedData: string): string;
  /** Whether the current key sealed it; if not, `rotate-master` has to seal it again. */
  isCurrent(sealed: string): boolean;
  /** Whether one of the keys at hand sealed it. */
  isKnown(sealed: string): boolean;
}

/** `previous` only opens (contract 6.6). Keys are 32 bytes. */
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
          `No master key opens this secret (key id ${id}); set MASTER_KEY or MASTER_KEY_PREVIOUS to the key that sealed it.`,
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

/** The first 8 bytes of the SHA-256, as 16 hex characters: enough to tell two secrets apart, useless to guess one. */
export function fingerprint(secret: string | Uint8Array): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 16);
}

function keyId(key: Uint8Array): string {
  return fingerprint(key).slice(0, 8);
}

/** Compares two strings in a time that depends on their lengths only. */
export function equalInConstantTime(a: string, b: string): boolean {
  const left = createHash("sha256").update(a).digest();
  const right = createHash("sha256").update(b).digest();
  return timingSafeEqual(left, right);
}
