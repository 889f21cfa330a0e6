import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";

import { argon2, ARGON2ID_PREFIX } from "./foreign-hashes.ts";
import { FairQueue, type Load, type Trust } from "./fair-queue.ts";
import { verifyHash } from "./foreign-hashes.ts";
import { networkOf, networksOf } from "./network.ts";
import { Problem } from "./problem.ts";

const SALT_AND_DIGEST_BYTES = 32;

/** Maximum number of requests that wait for a hash (contract 4.17); further requests are rejected. */
const WAITING_LIMIT = 512;
const RETRY_AFTER_S = 5;
/**
 * Time in ms for which a wrong password makes its network suspect, and the maximum number of suspect networks (contract
 * 3.7).
 */
const SUSPECT_FOR_MS = 15 * 60_000;
const MAX_SUSPECTS = 10_000;
/** Stands for the client's address in internal work, which has no client. */
const NO_ADDRESS = "";

export interface Passwords {
  /**
   * Hashes the NFC form of a password, because keyboards send the same character in several forms (RFC 8265). `from` is
   * the client's address; it is absent for internal work. Throws `overloaded` if too many requests wait already.
   */
  hash(password: string, from?: string): Promise<string>;
  /**
   * Verifies a password as it was typed and, if that fails, in NFC form, because earlier versions and other products
   * hashed the typed form. If `hash` is null, it verifies against a hash that no password matches. Its duration
   * therefore does not reveal whether a user has a hash; only an imported hash takes another time (contract 4.7).
   * `isTrusted` gives the request priority over requests of unknown clients (contract 3.7). Throws `overloaded` if too
   * many requests wait already.
   */
  verify(
    password: string,
    hash: string | null,
    from?: string,
    isTrusted?: boolean,
  ): Promise<boolean>;
  /** Whether requests wait, so that `isTrusted` has an effect. */
  readonly isBusy: boolean;
  /** Returns whether the hash was computed with other parameters than the current ones. */
  needsRehash(hash: string): boolean;
}

/**
 * Creates the password hasher. `running` and `waiting` limit the load: one hash takes 19 MiB of memory and about 30 ms
 * of CPU time.
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
  const unmatchableHash = `${ARGON2ID_PREFIX}${randomPart()}$${randomPart()}`;
  return {
    load: () => queue.load,
    hash: (password, from = NO_ADDRESS) =>
      queue.take(turnsOf(from), () => argon2.hash(normalPassword(password))),
    async verify(password, hash, from = NO_ADDRESS, isTrusted = false) {
      const tries = new Set([password, normalPassword(password)]);
      const task = async () => {
        for (const one of tries)
          if (await verifyHash(one, hash ?? unmatchableHash)) return hash !== null;
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

/** Returns the form of a new password that is validated and hashed. */
export const normalPassword = (typed: string): string => typed.normalize("NFC");

/**
 * Returns the networks between which requests take turns, largest first. For an IPv4 address the list begins with its
 * /24, the smallest block that is routed on the Internet, so that a client who rents a whole block counts once.
 */
function turnsOf(address: string): readonly string[] {
  const networks = networksOf(address);
  const block = /^(\d+\.\d+\.\d+)\.\d+$/.exec(networks[0] ?? "")?.[1];
  return block === undefined ? networks : [`${block}.0/24`, ...networks];
}

/** Networks that recently sent a wrong password. */
class Suspects {
  readonly #forMs: number;
  /** The time at which each network stops being suspect; oldest first. */
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
    if (this.#ends.size > MAX_SUSPECTS && oldest !== undefined) this.#ends.delete(oldest);
  }
}

/**
 * Returns the number of hashes that run at the same time, which leaves one thread free. WebCrypto, which verifies
 * bearer tokens, shares Bun's thread pool with argon2id; behind a full pool, a verification of 0.05 ms took 18 ms. A
 * pool of two threads still runs two hashes. The second one is reserved for another network, so the pool is full only
 * while two networks hash at once.
 */
function defaultRunning(): number {
  return Math.max(2, availableParallelism() - 1);
}

function randomPart(): string {
  return randomBytes(SALT_AND_DIGEST_BYTES).toString("base64").replaceAll("=", "");
}
