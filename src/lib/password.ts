import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";

import { argon2, ARGON2ID_PREFIX } from "./argon2.ts";
import { FairQueue, type Load, type Trust } from "./fair-queue.ts";
import { verifyHash } from "./foreign-hashes.ts";
import { networkOf, networksOf } from "./network.ts";
import { Problem } from "./problem.ts";

const SALT_AND_DIGEST_BYTES = 32;

/** The number of requests that may wait for a hash (contract 4.17); a further request is rejected. */
const WAITING_LIMIT = 512;
const RETRY_AFTER_S = 5;
/** Time in ms for which a wrong password makes its network suspect, and the number of such networks (contract 3.7). */
const SUSPECT_FOR_MS = 15 * 60_000;
const SUSPECTS = 10_000;
/** Replaces the client's address for internal work, which has no client. */
const NO_ADDRESS = "";

export interface Passwords {
  /**
   * Hashes a password in NFC, because keyboards send one character in several ways (RFC 8265). `from` is the client's address; absent for internal work. Throws `overloaded` if too many
   * requests wait already, as `verify` does.
   */
  hash(password: string, from?: string): Promise<string>;
  /**
   * Verifies a password as it was typed and, if that fails, in NFC: the hash may be of an earlier version or of another
   * product, which hashed what was typed. Always runs the same verifications for the same text, so that its duration
   * tells nothing. Without a hash (`null`) it
   * uses a hash that no password matches. An imported hash takes its own time (contract 4.7). `isTrusted` puts the
   * request before those of strangers (contract 3.7).
   */
  verify(
    password: string,
    hash: string | null,
    from?: string,
    isTrusted?: boolean,
  ): Promise<boolean>;
  /** Whether requests wait, so that it matters which of them are trusted. */
  readonly isBusy: boolean;
  /** Whether the hash was made with other parameters than the current ones. */
  needsRehash(hash: string): boolean;
}

/**
 * Creates the password hasher. `running` and `waiting` limit the load: one hash takes 19 MiB and about 30 ms of a
 * core.
 */
export function createPasswords(
  limits: { running?: number; waiting?: number; suspectForMs?: number } = {},
): Passwords & { load(): Load } {
  const running = limits.running ?? defaultRunning();
  const queue = new FairQueue({
    running,
    share: Math.max(1, running - 1),
    waiting: limits.waiting ?? WAITING_LIMIT,
    rejection: () =>
      new Problem("overloaded", { headers: { "Retry-After": String(RETRY_AFTER_S) } }),
  });
  const suspects = new Suspects(limits.suspectForMs ?? SUSPECT_FOR_MS);
  const unmatchable = `${ARGON2ID_PREFIX}${randomPart()}$${randomPart()}`;
  return {
    load: () => queue.load,
    hash: (password, from = NO_ADDRESS) =>
      queue.take(turnsOf(from), () => argon2.hash(normalPassword(password))),
    async verify(password, hash, from = NO_ADDRESS, isTrusted = false) {
      const tries = new Set([password, normalPassword(password)]);
      const task = async () => {
        for (const one of tries)
          if (await verifyHash(one, hash ?? unmatchable)) return hash !== null;
        return false;
      };
      const trust = isTrusted ? "trusted" : suspects.trustIn(from);
      const isRight = await queue.take(turnsOf(from), task, trust);
      if (!isRight) suspects.add(from);
      return isRight;
    },
    get isBusy() {
      return queue.isBusy;
    },
    needsRehash: (hash) => !hash.startsWith(ARGON2ID_PREFIX),
  };
}

/** Returns the form in which a new password is judged and hashed. */
export const normalPassword = (typed: string): string => typed.normalize("NFC");

/**
 * Lists the networks among which turns go round, widest first. An IPv4 address has its /24, the smallest block that is
 * routed on the internet, so that somebody who rents a block counts once.
 */
function turnsOf(address: string): readonly string[] {
  const networks = networksOf(address);
  const block = /^(\d+\.\d+\.\d+)\.\d+$/.exec(networks[0] ?? "")?.[1];
  return block === undefined ? networks : [`${block}.0/24`, ...networks];
}

/** Networks from which a wrong password came lately. */
class Suspects {
  readonly #forMs: number;
  /** The networks with the end of the suspicion, the oldest first. */
  readonly #ends = new Map<string, number>();

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  trustIn(address: string): Trust {
    const end = this.#ends.get(networkOf(address)) ?? 0;
    return end > performance.now() ? "suspect" : "unknown";
  }

  add(address: string): void {
    const network = networkOf(address);
    this.#ends.delete(network);
    this.#ends.set(network, performance.now() + this.#forMs);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > SUSPECTS && oldest !== undefined) this.#ends.delete(oldest);
  }
}

/**
 * Leaves one thread free. WebCrypto, which verifies bearer tokens, shares Bun's thread pool with argon2id, and behind
 * a full pool a verification of 0.05 ms took 18 ms. A pool of two threads still runs two hashes, because the second
 * one is reserved for another network: the pool is full only while two networks hash at once.
 */
function defaultRunning(): number {
  return Math.max(2, availableParallelism() - 1);
}

function randomPart(): string {
  return randomBytes(SALT_AND_DIGEST_BYTES).toString("base64").replaceAll("=", "");
}
