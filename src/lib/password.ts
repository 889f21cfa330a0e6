import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";

import { FairQueue, type Load } from "./fair-queue.ts";
import { networksOf } from "./network.ts";
import { Problem } from "./problem.ts";

/** Contract 4.17. Bun computes argon2id with one lane, off the event loop. */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
const HASH_PREFIX = "$argon2id$v=19$m=19456,t=2,p=1$";
const SALT_AND_DIGEST_BYTES = 32;

/** Contract 4.17: one more is refused. */
const WAITING_LIMIT = 256;
const RETRY_AFTER_S = 5;
/** No address. */
const OURSELVES = "";

export interface Passwords {
  /**
   * `from` is the address that asks; absent for work of our own. Throws `overloaded` when too many wait already, as
   * `verify` does.
   */
  hash(password: string, from?: string): Promise<string>;
  /** Always one argon2id verification; against a hash that nothing matches where there is none (`null`). */
  verify(password: string, hash: string | null, from?: string): Promise<boolean>;
  /** Whether the hash was made with other parameters than today's. */
  needsRehash(hash: string): boolean;
}

/** `running` and `waiting` bound the work at hand: one hash takes 19 MiB and some 40 ms of a core. */
export function createPasswords(
  limits: { running?: number; waiting?: number } = {},
): Passwords & { load(): Load } {
  const running = limits.running ?? defaultRunning();
  const queue = new FairQueue({
    running,
    share: Math.max(1, running - 1),
    waiting: limits.waiting ?? WAITING_LIMIT,
    refusal: () => new Problem("overloaded", { headers: { "Retry-After": String(RETRY_AFTER_S) } }),
  });
  const nobody = `${HASH_PREFIX}${randomPart()}$${randomPart()}`;
  return {
    load: () => queue.load,
    hash: (password, from = OURSELVES) =>
      queue.take(networksOf(from), () => Bun.password.hash(password, ARGON2ID)),
    verify: (password, hash, from = OURSELVES) =>
      queue.take(
        networksOf(from),
        async () => (await Bun.password.verify(password, hash ?? nobody)) && hash !== null,
      ),
    needsRehash: (hash) => !hash.startsWith(HASH_PREFIX),
  };
}

/**
 * One thread stays free: WebCrypto, which checks the bearer tokens, shares Bun's pool with argon2id, and behind a
 * full pool a check of 0.05 ms took 18 ms. There are two places nevertheless where the pool has two threads, because
 * the second is for another network than the first: the pool is full only while two networks hash at once.
 */
function defaultRunning(): number {
  return Math.max(2, availableParallelism() - 1);
}

function randomPart(): string {
  return randomBytes(SALT_AND_DIGEST_BYTES).toString("base64").replaceAll("=", "");
}
