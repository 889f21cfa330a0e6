import type { Loaded, LoadRequest } from "../actor/event.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";
import type { Answer, DispatchStore } from "./store.ts";

const SUBSCRIPTIONS_PER_QUERY = 128;
const QUERIES_AT_ONCE = 2;
/** How long a query is left alone that failed because Postgres is out of reach. */
const RETRY_MS = 250;
/** How many windows are passed for one load; the next sweep goes on. Each takes some 10 ms. */
const PASSES_PER_LOAD = 32;

interface Asked {
  readonly request: LoadRequest;
  /** False once its actor stops. */
  readonly isWanted: () => boolean;
  readonly take: (loaded: Loaded) => void;
  /** Aborted by `clear`. */
  readonly signal: AbortSignal;
  /** How many windows were passed for it. */
  readonly passes: number;
}

interface LoadOptions extends Partial<Pick<Asked, "isWanted">> {
  readonly turn?: "first" | "in turn";
}

/**
 * Answers the loads of many actors with few queries: what is asked for while one runs goes into the next. A subscription
 * whose entries cannot be read is quarantined (`GroupRunner`), and the others are read without it.
 *
 * Where the reviews that a request leaves out fill the window of its log, the offset passes that window and the request
 * is read again, because other reviews must not wait behind them. That happens beside the other loads, one window at a
 * time, so that they do not wait for it.
 *
 * A request of an actor that stops is answered with nothing, without a query: a shard is given back once its actors are
 * gone, and all its subscriptions would wait for the one that cannot be read.
 */
export class Loader {
  #queue: Asked[] = [];
  /** What a send waits for: it goes ahead of everything else, and in queries of its own. */
  #urgent: Asked[] = [];
  #running = 0;
  #current = new AbortController();
  /** Ends when all windows are passed that have to be. */
  #passing = Promise.resolve();
  readonly #runner: GroupRunner<Asked, (Answer | undefined)[]>;

  constructor(deps: RunnerDeps & { readonly store: Pick<DispatchStore, "load" | "passWindow"> }) {
    this.#runner = new GroupRunner(deps, {
      keyOf: ({ request }) => request.id,
      run: async (group) => {
        const wanted = group.filter(({ isWanted }) => isWanted());
        for (const { request, passes } of wanted)
          if (passes > 0) await deps.store.passWindow(request.id);
        const requests = wanted.map(({ request }) => request);
        const answers = requests.length === 0 ? [] : await deps.store.load(requests);
        const byAsked = new Map(wanted.map((asked, i) => [asked, answers[i]]));
        return group.map((asked) =>
          byAsked.has(asked) ? byAsked.get(asked) : { request: asked.request, found: undefined },
        );
      },
      done: (group, answers) => group.forEach((asked, i) => this.#take(asked, answers[i])),
      describe: ({ request }) => ({ subscription_id: request.id }),
      events: { failed: "load.failed", stuck: "load.stuck" },
      retryMs: RETRY_MS,
    });
  }

  load(
    request: LoadRequest,
    take: Asked["take"],
    { turn = "in turn", isWanted = () => true }: LoadOptions = {},
  ): void {
    (turn === "first" ? this.#urgent : this.#queue).push({
      request,
      take,
      isWanted,
      signal: this.#current.signal,
      passes: 0,
    });
    if (this.#running < QUERIES_AT_ONCE) void this.#run();
  }

  /** Looks again at quarantined requests of actors that stop: their next try may be 30 s away. */
  release(): void {
    this.#runner.retryNow(({ isWanted }) => !isWanted());
  }

  /** Forgets what was asked for and not yet answered, because nobody waits for it any more. */
  clear(): void {
    this.#queue = [];
    this.#urgent = [];
    this.#runner.clear();
    this.#current.abort("cleared");
    this.#current = new AbortController();
  }

  #take(asked: Asked, answer: Answer | undefined): void {
    if (answer === undefined || asked.signal.aborted) return;
    if (!answer.isFull || asked.passes >= PASSES_PER_LOAD) return asked.take(answer);
    const again = { ...asked, passes: asked.passes + 1 };
    this.#passing = this.#passing.then(() =>
      asked.signal.aborted ? undefined : this.#runner.run([again]),
    );
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
