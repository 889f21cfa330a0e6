import { createHash, pbkdf2, scrypt, timingSafeEqual } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";

import type * as Library from "@node-rs/argon2";

/** Maximum memory in bytes that the verification of one hash may need. */
const MAX_MEMORY = 128 * 1024 * 1024;
const MAX_BCRYPT_COST = 14;
const MAX_ARGON2_PASSES = 10;
const MAX_ARGON2_LANES = 8;
const MAX_PBKDF2_ITERATIONS = 2_000_000;
const MAX_SCRYPT_LANES = 4;
const MAX_PHPASS_LOG_ROUNDS = 18;

/**
 * Number of bytes of a password that bcrypt uses. Bun would hash a longer password first, which no other implementation
 * does.
 */
const BCRYPT_BYTES = 72;
/** Number of MD5 hashes that a phpass verification computes before it yields to the event loop. */
const ROUNDS_PER_TURN = 2_048;

const PHPASS_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * A format of password hashes that can be imported (contract 10.9).
 *
 * - `excess` returns the name of a cost parameter that is too high: verifying the hash would block other sign-ins.
 * - `verify` returns whether the hash belongs to the password.
 */
interface Scheme {
  readonly form: RegExp;
  readonly excess: (parts: readonly string[]) => string | undefined;
  readonly verify: (password: string, hash: string, parts: readonly string[]) => Promise<boolean>;
}

const ARGON2: Scheme = {
  form: /^\$argon2(?:i|id)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,172}$/,
  excess: ([memoryKiB, passes, lanes]) => {
    if (Number(memoryKiB) * 1024 > MAX_MEMORY) return "m";
    if (Number(passes) > MAX_ARGON2_PASSES) return "t";
    return Number(lanes) > MAX_ARGON2_LANES ? "p" : undefined;
  },
  verify: (password, hash) => argon2.verify(password, hash),
};

const BCRYPT: Scheme = {
  form: /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/,
  excess: ([cost]) => (Number(cost) > MAX_BCRYPT_COST ? "cost" : undefined),
  verify: (password, hash) =>
    Bun.password.verify(Buffer.from(password).subarray(0, BCRYPT_BYTES), hash),
};

/** The PBKDF2 format of Django. */
const PBKDF2: Scheme = {
  form: /^pbkdf2_sha256\$(\d{1,9})\$([^$\s]{1,128})\$([A-Za-z0-9+/]{43}=)$/,
  excess: ([iterations]) => (Number(iterations) > MAX_PBKDF2_ITERATIONS ? "iterations" : undefined),
  verify: async (password, _hash, [iterations, salt = "", digest = ""]) => {
    const expected = Buffer.from(digest, "base64");
    const derive = promisify(pbkdf2);
    const derived = await derive(password, salt, Number(iterations), expected.length, "sha256");
    return timingSafeEqual(derived, expected);
  },
};

/** Scrypt in the PHC string format. */
const SCRYPT: Scheme = {
  form: /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/,
  excess: ([logN, r, p]) => {
    if (128 * 2 ** Number(logN) * Number(r) > MAX_MEMORY) return "ln and r";
    return Number(p) > MAX_SCRYPT_LANES ? "p" : undefined;
  },
  verify: async (password, _hash, [logN, r, p, salt = "", digest = ""]) => {
    const expected = Buffer.from(digest, "base64");
    const cost = { N: 2 ** Number(logN), r: Number(r), p: Number(p), maxmem: 2 * MAX_MEMORY };
    const derived = await new Promise<Buffer>((resolve, reject) => {
      scrypt(password, Buffer.from(salt, "base64"), expected.length, cost, (error, key) =>
        error ? reject(error) : resolve(key),
      );
    });
    return timingSafeEqual(derived, expected);
  },
};

const PHPASS: Scheme = {
  form: /^\$[PH]\$([./0-9A-Za-z])([./0-9A-Za-z]{8})([./0-9A-Za-z]{22})$/,
  excess: ([rounds = ""]) =>
    PHPASS_DIGITS.indexOf(rounds) > MAX_PHPASS_LOG_ROUNDS ? "rounds" : undefined,
  verify: async (password, _hash, [rounds = "", salt = "", digest = ""]) => {
    const key = Buffer.from(password);
    let state = createHash("md5").update(salt).update(key).digest();
    for (let left = 2 ** PHPASS_DIGITS.indexOf(rounds); left > 0; left--) {
      state = createHash("md5").update(state).update(key).digest();
      // Yields to the event loop, because MD5 runs on the main thread and would block other requests.
      if (left % ROUNDS_PER_TURN === 0) await setImmediate();
    }
    return timingSafeEqual(Buffer.from(phpassText(state)), Buffer.from(digest));
  },
};

/** Encodes bytes in the base64 variant of phpass, which starts with the lowest bits. */
function phpassText(bytes: Uint8Array): string {
  let text = "";
  let value = 0;
  let bits = 0;
  for (const byte of bytes) {
    value |= byte << bits;
    for (bits += 8; bits >= 6; bits -= 6, value >>= 6) text += PHPASS_DIGITS.charAt(value & 63);
  }
  return bits > 0 ? text + PHPASS_DIGITS.charAt(value & 63) : text;
}

const SCHEMES = [ARGON2, BCRYPT, PBKDF2, SCRYPT, PHPASS];

function schemeOf(hash: string): { scheme: Scheme; parts: readonly string[] } | undefined {
  for (const scheme of SCHEMES) {
    const match = scheme.form.exec(hash);
    if (match !== null) return { scheme, parts: match.slice(1) };
  }
  return undefined;
}

/** Returns the reason why a password hash cannot be imported; undefined if it can. */
export function hashError(hash: string): string | undefined {
  const known = schemeOf(hash);
  if (known === undefined)
    return "must be a hash of bcrypt, argon2i, argon2id, PBKDF2-SHA256 (Django), scrypt (PHC) or phpass";
  const excess = known.scheme.excess(known.parts);
  return excess === undefined ? undefined : `costs too much to verify: ${excess} is too high`;
}

/** Verifies a password against a hash of any scheme that `hashError` accepts; throws for other hashes. */
export async function verifyHash(password: string, hash: string): Promise<boolean> {
  const known = schemeOf(hash);
  if (known === undefined) throw new Error("The scheme of the stored password hash is unknown.");
  return known.scheme.verify(password, hash, known.parts);
}

/** Cost parameters of contract 4.17; both implementations use a parallelism of 1. */
const COST = { memoryCost: 19_456, timeCost: 2 } as const;
/** The beginning of each hash that {@link argon2} computes. */
export const ARGON2ID_PREFIX = "$argon2id$v=19$m=19456,t=2,p=1$";

/** Computes and verifies argon2 hashes in the PHC string format, without blocking the event loop. */
interface Argon2 {
  /** Hashes with argon2id and the parameters of contract 4.17. */
  hash(password: string): Promise<string>;
  /** Verifies a hash of argon2i or argon2id with any parameters. Throws if it is malformed. */
  verify(password: string, hash: string): Promise<boolean>;
}

/**
 * Uses a native library written in Rust, which takes half the time of Bun's implementation. An executable writes the
 * library to the directory of temporary files and loads it from there. If the library cannot be loaded, Bun's
 * implementation is used.
 */
export const argon2 = await import("@node-rs/argon2").then(argon2Of, () => argon2Of());

/** Returns an implementation that uses the native library, or Bun if the library is absent. */
export function argon2Of(library?: Pick<typeof Library, "hash" | "verify">): Argon2 {
  if (library === undefined)
    return {
      hash: (password) => Bun.password.hash(password, { ...COST, algorithm: "argon2id" }),
      verify: (password, hash) => Bun.password.verify(password, hash),
    };
  return {
    hash: (password) => library.hash(password, { ...COST, parallelism: 1 }),
    verify: (password, hash) => library.verify(hash, password),
  };
}
