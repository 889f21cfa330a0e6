import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import type { DispatchStore } from "./store.ts";

/** Subscriptions per query, and queries at once. */
const GROUP = 128;
const PARALLEL = 2;
const RETRY_MS = 250;

/** Answers the loads of many actors with few queries: whatever is asked for while one runs goes into the next. */
export class Loader {
  #queue: { request: LoadRequest; take: (loaded: Loaded) => void }[] = [];
  #running = 0;
  /** Counts the times that nobody wanted any more what was asked for. */
  #clearings = 0;

  readonly #deps: { readonly store: DispatchStore; readonly clock: Clock; readonly log: Log };

  constructor(deps: { store: DispatchStore; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  load(request: LoadRequest, take: (loaded: Loaded) => void): void {
    this.#queue.push({ request, take });
    if (this.#running < PARALLEL) void this.#run();
  }

  /** Nobody waits for what was asked for: it is not asked for again either. */
  clear(): void {
    this.#queue = [];
    this.#clearings += 1;
  }

  async #run(): Promise<void> {
    this.#running += 1;
    // Those who ask in the same tick share a query.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, GROUP);
      const loaded = await this.#loadUntilAnswered(group.map(({ request }) => request));
      loaded.forEach((one, i) => group[i]?.take(one));
    }
    this.#running -= 1;
  }

  /** Nothing, if a `clear` came between two tries. */
  async #loadUntilAnswered(requests: readonly LoadRequest[]): Promise<Loaded[]> {
    const clearings = this.#clearings;
    while (clearings === this.#clearings) {
      try {
        return await this.#deps.store.load(requests);
      } catch (error) {
        this.#deps.log.warn("outbox.unreadable", errorFields(error));
        await this.#deps.clock.sleep(RETRY_MS);
      }
    }
    return [];
  }
}
