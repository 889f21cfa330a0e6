import type { PostOutcome } from "./deliver.ts";

/** For how long an attempt says something about our own network. */
const WINDOW_MS = 10_000;
const MIN_HOSTS = 20;
const MIN_PARTNERS = 10;

/**
 * Whether it is our own network or resolver that fails (contract 7.8): it begins when more than half of many hosts of
 * many partners cannot be reached, and lasts while more than half cannot, however few are tried. `unreached` counts those
 * of the hosts that could not be reached when they were last tried.
 */
export function isOurNetwork(
  lasts: boolean,
  { hosts, partners, unreached }: Record<"hosts" | "partners" | "unreached", number>,
): boolean {
  const isMost = 2 * unreached > hosts;
  return isMost && (lasts || (hosts >= MIN_HOSTS && partners >= MIN_PARTNERS));
}

const BEFORE_CONNECTION: ReadonlySet<string> = new Set(["dns", "connect", "tls", "timeout"]);

/** Whether an attempt failed before the request left; what comes later is about the receiver. */
export function isUnreached(outcome: PostOutcome): boolean {
  return outcome.kind === "failed" && !outcome.reached && BEFORE_CONNECTION.has(outcome.errorCode);
}

interface Seen {
  readonly atMs: number;
  readonly partnerId: number;
  readonly unreached: boolean;
}

/** Remembers how the hosts were reached that were tried within the window. */
export class Reach {
  /** By host; the latest stands last. */
  readonly #seen = new Map<string, Seen>();
  #unreached = 0;
  isOurs = false;

  /** Notes an attempt, and answers whether our own network fails now. */
  note(host: string, seen: Seen): boolean {
    this.#forget(host);
    for (const [oldest, { atMs }] of this.#seen) {
      if (seen.atMs - atMs < WINDOW_MS) break;
      this.#forget(oldest);
    }
    this.#seen.set(host, seen);
    if (seen.unreached) this.#unreached += 1;
    const hosts = this.#seen.size;
    const mayBegin = seen.unreached && !this.isOurs && 2 * this.#unreached > hosts;
    const partners = mayBegin ? this.#countPartners() : 0;
    this.isOurs = isOurNetwork(this.isOurs, { hosts, partners, unreached: this.#unreached });
    return this.isOurs;
  }

  /** No further than it matters. */
  #countPartners(): number {
    const partners = new Set<number>();
    for (const { partnerId } of this.#seen.values()) {
      partners.add(partnerId);
      if (partners.size >= MIN_PARTNERS) break;
    }
    return partners.size;
  }

  #forget(host: string): void {
    if (this.#seen.get(host)?.unreached === true) this.#unreached -= 1;
    this.#seen.delete(host);
  }
}
