import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import type { DispatchStore } from "./store.ts";

const SUBSCRIPTIONS_PER_QUERY = 128;
const QUERIES_AT_ONCE = 2;
/** How long a query that failed is left alone. */
const RETRY_MS = 250;

interface Asked {
  readonly request: LoadRequest;
  readonly take: (loaded: Loaded) => void;
}

/** Answers the loads of many actors with few queries: what is asked for while one runs goes into the next. */
export class Loader {
  #queue: Asked[] = [];
  /** What a send waits for: it goes ahead of everything else, and in queries of its own. */
  #urgent: Asked[] = [];
  #running = 0;
  /** Counts the calls of `clear`. */
  #clearings = 0;

  readonly #deps: { readonly store: DispatchStore; readonly clock: Clock; readonly log: Log };

  constructor(deps: { store: DispatchStore; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  load(request: LoadRequest, take: Asked["take"], turn: "first" | "in turn" = "in turn"): void {
    (turn === "first" ? this.#urgent : this.#queue).push({ request, take });
    if (this.#running < QUERIES_AT_ONCE) void this.#run();
  }

  /** Forgets what was asked for and not yet answered, because nobody waits for it any more. */
  clear(): void {
    this.#queue = [];
    this.#urgent = [];
    this.#clearings += 1;
  }

  async #run(): Promise<void> {
    this.#running += 1;
    // Actors that ask in the same tick share a query.
    await Promise.resolve();
    while (this.#urgent.length + this.#queue.length > 0) {
      const queue = this.#urgent.length > 0 ? this.#urgent : this.#queue;
      const group = queue.splice(0, SUBSCRIPTIONS_PER_QUERY);
      const loaded = await this.#loadUntilAnswered(group.map(({ request }) => request));
      loaded.forEach((one, i) => group[i]?.take(one));
    }
    this.#running -= 1;
  }

  /** Tries until Postgres answers; gives up, with an empty answer, if a `clear` comes between two tries. */
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
