import type { Clock } from "../lib/clock.ts";

const FRESH_MS = 600_000;
/** How long a failure is answered again, so that not every caller waits for a provider that is away. */
const FAILED_MS = 5_000;
/** How often `renew` fetches at most: its reason, such as an unknown key id, may be invented by a stranger. */
const RENEW_EVERY_MS = 60_000;

/** A document of another server, which is fetched once for all who want it at the same time. */
export class Cached<T> {
  readonly #clock: Clock;
  readonly #load: () => Promise<T>;
  #loading: Promise<T> | undefined;
  #loaded: { readonly value: T; readonly atMs: number } | undefined;
  #failed: { readonly error: unknown; readonly atMs: number } | undefined;
  #renewedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, load: () => Promise<T>) {
    this.#clock = clock;
    this.#load = load;
  }

  async get(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#loaded !== undefined && nowMs - this.#loaded.atMs < FRESH_MS)
      return this.#loaded.value;
    if (this.#failed !== undefined && nowMs - this.#failed.atMs < FAILED_MS)
      throw this.#failed.error;
    return this.#reload();
  }

  /** Fetches a new copy, unless it did so a short while ago; then it answers the copy at hand. */
  async renew(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#renewedAtMs < RENEW_EVERY_MS) return this.get();
    this.#renewedAtMs = nowMs;
    return this.#reload();
  }

  #reload(): Promise<T> {
    this.#loading ??= this.#load()
      .then(
        (value) => {
          this.#loaded = { value, atMs: this.#clock.monotonicMs() };
          this.#failed = undefined;
          return value;
        },
        (error: unknown) => {
          this.#failed = { error, atMs: this.#clock.monotonicMs() };
          throw error;
        },
      )
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }
}
