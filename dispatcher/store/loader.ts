import { errorFields } from "../../src/lib/log.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import { ENTRY_BYTES, FIRST_LOAD, MAX_QUEUED } from "../actor/state.ts";
import { noteFailure, type Quarantine, wholly } from "./quarantine.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";
import type { Answer, DispatchStore } from "./store.ts";

const SUBSCRIPTIONS_PER_QUERY = 128;
const QUERIES_AT_ONCE = 2;
/** The bytes that a query may bring. Full loads of entries of the usual size bring no more. */
const BYTES_PER_QUERY = SUBSCRIPTIONS_PER_QUERY * MAX_QUEUED * ENTRY_BYTES;
/** The number of subscriptions of the first query, and of every query while entries have 1 MiB each. */
const FEWEST_PER_QUERY = 32;
/** The pause in milliseconds before a query is retried that failed because PostgreSQL is out of reach. */
const RETRY_MS = 250;
/**
 * The most windows of the log that the offset passes for one load; each takes about 10 ms. The next sweep continues.
 */
const PASSES_PER_LOAD = 32;

interface OpenRequest {
  readonly request: LoadRequest;
  /** Returns false once the actor that sent the request stops. */
  readonly isWanted: () => boolean;
  readonly take: (loaded: Loaded) => void;
  /** Aborted when `clear` makes the result of the request useless. */
  readonly signal: AbortSignal;
  /** The number of windows of the log that the offset has passed for the request. */
  readonly passes: number;
  /** Whether the last answer ended at a held entry. */
  readonly isHeld: boolean;
  /** The last sequence number that was assigned when the request was read first. */
  readonly lastSequence?: number | undefined;
}

interface LoaderDeps extends RunnerDeps {
  readonly store: Pick<DispatchStore, "load" | "passWindow" | "postpone" | "hold">;
  readonly quarantine?: Quarantine;
}

interface LoadOptions extends Partial<Pick<OpenRequest, "isWanted">> {
  readonly turn?: keyof ReturnType<typeof newQueues>;
}

/**
 * Batches the loads of many actors into few queries: requests that arrive during a query share the next one. A
 * subscription whose entries cannot be read is quarantined (`GroupRunner`), and the others are read without it.
 *
 * If the reviews that a request leaves out fill its window of the log, the offset passes the window and the request is
 * read again, because other reviews must not wait for the left-out ones. Windows are passed while other loads go on,
 * one at a time, so that these do not wait. Entries of an account that is not active are marked as held in the same
 * way. Entries behind one that waits for a retry are postponed while other loads go on, so that later loads do not walk
 * past them.
 *
 * While the entries in memory have as many bytes as they may have, requests bring settings and tests only. If queries
 * bring large entries, the next queries have fewer subscriptions, because the bytes of an entry are known only after it
 * is read.
 *
 * A request of an actor that stops gets an empty result without a query. Otherwise a shard, which is released once its
 * actors are gone, would be held up by one subscription that cannot be read.
 */
export class Loader {
  /** The loads for which a send waits (`first`), and all others (`in turn`). */
  #queues = newQueues();
  #running = 0;
  /** The number of subscriptions that the next query may have. */
  #size = FEWEST_PER_QUERY;
  #current = new AbortController();
  /** Resolves when the offsets have passed all windows that wait for that. */
  #passing = Promise.resolve();
  readonly #runner: GroupRunner<OpenRequest, (Answer | undefined)[]>;
  readonly #quarantine: Quarantine | undefined;
  readonly #deps: LoaderDeps;
  /** The subscriptions whose entries are being postponed. */
  readonly #postponing = new Set<string>();

  /** `bytesLeft` tells the bytes that may be read ahead of sends; undefined while there is no room for any entry. */
  constructor(deps: LoaderDeps, bytesLeft: () => number | undefined = () => Infinity) {
    this.#deps = deps;
    this.#quarantine = deps.quarantine;
    this.#runner = new GroupRunner(deps, {
      keyOf: ({ request }) => request.id,
      run: async (group) => {
        const wanted = group.filter(({ isWanted }) => isWanted());
        for (const { request, passes, isHeld } of wanted) {
          if (passes > 0) await deps.store.passWindow(request.id);
          if (isHeld) await deps.store.hold(request);
        }
        const left = bytesLeft();
        const share = left && Math.floor(left / wanted.length);
        const requests = wanted.map(({ request }) => limitBytes(request, share));
        const answers = requests.length === 0 ? [] : await deps.store.load(requests);
        const byRequest = new Map(wanted.map((open, i) => [open, answers[i]]));
        return group.map((open) =>
          byRequest.has(open) ? byRequest.get(open) : { request: open.request, found: undefined },
        );
      },
      done: (group, answers) => {
        this.#size = sizeAfter(this.#size, answers);
        group.forEach((open, i) => this.#take(open, answers[i]));
      },
      describe: ({ request }) => ({ subscription_id: request.id }),
      quarantined: ({ request }, failure) =>
        noteFailure(deps.quarantine, request.id, { reason: "unreadable", failure }),
      events: { failed: "load.failed", stuck: "load.stuck" },
      retryMs: RETRY_MS,
    });
  }

  load(
    request: LoadRequest,
    take: OpenRequest["take"],
    { turn = "in turn", isWanted = () => true }: LoadOptions = {},
  ): void {
    const { signal } = this.#current;
    const open = { request, take, isWanted, signal, passes: 0, isHeld: false };
    this.#queues[turn].push(open);
    if (this.#running < QUERIES_AT_ONCE) void this.#run();
  }

  /** Answers the quarantined requests of stopping actors immediately, because their next try may be 30 s away. */
  release(): void {
    this.#runner.retryNow(({ isWanted }) => !isWanted());
  }

  /** Forgets all open requests, because their results are not needed any more. */
  clear(): void {
    this.#queues = newQueues();
    this.#runner.clear();
    this.#current.abort("cleared");
    this.#current = new AbortController();
  }

  #take(open: OpenRequest, answer: Answer | undefined): void {
    if (answer === undefined || open.signal.aborted) return;
    const { id } = open.request;
    if (answer.isUnusable) this.#quarantine?.note(id, wholly(id, "secret_unreadable"));
    else this.#quarantine?.end(id, "secret_unreadable");
    const { isFull = false, isHeld = false, isBehind = false } = answer;
    if (isBehind) this.#postpone(open.request);
    const lastSequence = open.lastSequence ?? answer.found?.lastSequence;
    if ((!isFull && !isHeld) || open.passes >= PASSES_PER_LOAD)
      return open.take(
        answer.found && lastSequence !== undefined
          ? { ...answer, found: { ...answer.found, lastSequence } }
          : answer,
      );
    const again = { ...open, passes: open.passes + 1, isHeld, lastSequence };
    this.#passing = this.#passing.then(() =>
      open.signal.aborted ? undefined : this.#runner.run([again]),
    );
  }

  /**
   * Postpones entries of a subscription, in turn with windows that are passed. After a failure a later load requests it
   * again.
   */
  #postpone(request: LoadRequest): void {
    const { id } = request;
    if (this.#postponing.has(id)) return;
    this.#postponing.add(id);
    const { store, log } = this.#deps;
    this.#passing = this.#passing
      .then(() => store.postpone(request))
      .catch((error: unknown) =>
        log.warn("load.failed", { subscription_id: id, ...errorFields(error) }),
      )
      .finally(() => this.#postponing.delete(id));
  }

  async #run(): Promise<void> {
    this.#running += 1;
    // Waits for the other loads of the same tick, which share the query.
    await Promise.resolve();
    for (let next = this.#takeNext(); next.length > 0; next = this.#takeNext())
      await this.#runner.run(next);
    this.#running -= 1;
  }

  #takeNext(): OpenRequest[] {
    const { first, "in turn": inTurn } = this.#queues;
    return (first.length > 0 ? first : inTurn).splice(0, this.#size);
  }
}

/** Returns the number of subscriptions of the next query, at most twice as many as `size`. */
function sizeAfter(size: number, answers: readonly (Answer | undefined)[]): number {
  const bytes = answers
    .flatMap((answer) => answer?.found?.entries ?? [])
    .reduce((sum, entry) => sum + entry.bytes, 0);
  const fitting = Math.floor((answers.length * BYTES_PER_QUERY) / Math.max(1, bytes));
  return Math.max(FEWEST_PER_QUERY, Math.min(fitting, 2 * size, SUBSCRIPTIONS_PER_QUERY));
}

/** Limits the bytes of a load to its share of the bytes that are left, but to no fewer than a first load may have. */
function limitBytes(request: LoadRequest, share: number | undefined): LoadRequest {
  if (share === undefined) return { ...request, limit: 0, maxBytes: 0 };
  const most = Math.max(share, FIRST_LOAD * ENTRY_BYTES);
  return request.maxBytes <= most ? request : { ...request, maxBytes: most };
}

function newQueues(): Record<"first" | "in turn", OpenRequest[]> {
  return { first: [], "in turn": [] };
}
