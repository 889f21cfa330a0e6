import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import { GroupRunner } from "./group-runner.ts";
import type { DispatchStore } from "./store.ts";

const SUBSCRIPTIONS_PER_QUERY = 128;
const QUERIES_AT_ONCE = 2;
/** How long a query is left alone that failed because Postgres is out of reach. */
const RETRY_MS = 250;

interface Asked {
  readonly request: LoadRequest;
  readonly take: (loaded: Loaded) => void;
}

/**
 * Answers the loads of many actors with few queries: what is asked for while one runs goes into the next. A subscription
 * whose entries cannot be read is quarantined (`GroupRunner`), and the others are read without it.
 */
export class Loader {
  #queue: Asked[] = [];
  /** What a send waits for: it goes ahead of everything else, and in queries of its own. */
  #urgent: Asked[] = [];
  #running = 0;
  readonly #runner: GroupRunner<Asked, Loaded[]>;

  constructor(deps: {
    readonly store: Pick<DispatchStore, "load">;
    readonly clock: Clock;
    readonly log: Log;
  }) {
    this.#runner = new GroupRunner(deps, {
      keyOf: ({ request }) => request.id,
      run: (group) => deps.store.load(group.map(({ request }) => request)),
      done: (group, loaded) => loaded.forEach((one, i) => group[i]?.take(one)),
      describe: ({ request }) => ({ subscription_id: request.id }),
      events: { failed: "outbox.unreadable", stuck: "load.stuck" },
      retryMs: RETRY_MS,
    });
  }

  load(request: LoadRequest, take: Asked["take"], turn: "first" | "in turn" = "in turn"): void {
    (turn === "first" ? this.#urgent : this.#queue).push({ request, take });
    if (this.#running < QUERIES_AT_ONCE) void this.#run();
  }

  /** Forgets what was asked for and not yet answered, because nobody waits for it any more. */
  clear(): void {
    this.#queue = [];
    this.#urgent = [];
    this.#runner.clear();
  }

  async #run(): Promise<void> {
    this.#running += 1;
    // Actors that ask in the same tick share a query.
    await Promise.resolve();
    while (this.#urgent.length + this.#queue.length > 0) {
      const queue = this.#urgent.length > 0 ? this.#urgent : this.#queue;
      await this.#runner.run(queue.splice(0, SUBSCRIPTIONS_PER_QUERY));
    }
    this.#running -= 1;
  }
}
