/** The numbers of running and waiting tasks. */
export interface Load {
  readonly running: number;
  readonly waiting: number;
}

interface Limits {
  /** Maximum number of tasks that run at the same time, and of further tasks that wait. */
  readonly running: number;
  readonly waiting: number;
  /**
   * Maximum number of running tasks of one outermost network. Suspects may start a task only while fewer tasks than
   * this number run in total.
   */
  readonly share: number;
  /** Creates the error for a task that can neither run nor wait. */
  readonly rejection: () => Error;
}

/**
 * How far a client is trusted. Trusted and unknown clients take turns, so any number of unknown clients delays a
 * trusted one by only one task. Suspects come after all others.
 */
export type Trust = "trusted" | "unknown" | "suspect";
const TRUSTED: Trust = "trusted";
const UNKNOWN: Trust = "unknown";
const SUSPECT: Trust = "suspect";

/**
 * Time in ms after a task of a trusted client during which unknown clients leave one place free for the next trusted
 * one. Without a free place, a trusted client would wait for a running task to end.
 */
const RESERVED_MS = 2_000;

/**
 * The tasks of one network, including those of all networks inside it. The outermost level of the tree consists of the
 * kinds of trust.
 */
class Network {
  /** Returns the maximum number of tasks of this network that run at the same time. */
  readonly share: () => number;
  /** The networks inside this network by name, in the order of their turns. */
  readonly children = new Map<string, Network>();
  /** The waiting tasks of an innermost network; empty in a network that contains others. */
  readonly queue: Waiter[] = [];
  running = 0;
  waiting = 0;

  constructor(share: () => number) {
    this.share = share;
  }

  get isOpen(): boolean {
    return this.running < this.share();
  }
}

/** A network together with the networks that contain it, outermost first. */
interface Branch {
  readonly path: readonly string[];
  readonly networks: readonly Network[];
}

interface Waiter {
  start(): void;
  reject(): void;
}

/**
 * Runs a bounded number of tasks at the same time and takes turns between networks, so that no network can starve the
 * others. A network is a path, such as an IPv6 /48, its /56 and its /64. Turns rotate among the outermost networks,
 * then among those inside, so many small networks inside a large one count as one. Above these levels, trusted and
 * unknown clients take turns.
 *
 * - A network without a running task precedes all networks that have one, so no network delays another by more than one
 *   task.
 * - An outermost network never runs more tasks than its share. Suspects start a task only while fewer tasks than this
 *   share run in total. If the share is one less than the maximum number of running tasks, a newcomer starts
 *   immediately beside one busy network, or beside any number of suspects.
 * - For `RESERVED_MS` after a task of a trusted client, all unknown clients together run no more tasks than one share,
 *   so that trusted clients start at once.
 * - When the maximum number of tasks wait, the kind of trust with the most waiting tasks is chosen, then its network
 *   with the most. This network loses its newest task. A newcomer is therefore rejected only if no network has at least
 *   two more waiting tasks than its own.
 */
export class FairQueue {
  readonly #limits: Limits;
  readonly #all = new Network(unlimited);
  readonly #now: () => number;
  #reservedUntil = Number.NEGATIVE_INFINITY;

  /** `now` returns the time in ms. */
  constructor(limits: Limits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  get load(): Load {
    return { running: this.#all.running, waiting: this.#all.waiting };
  }

  /** Whether tasks wait, or a further task would have to wait. */
  get isBusy(): boolean {
    return this.#all.waiting > 0 || !this.#hasPlace;
  }

  get #hasPlace(): boolean {
    return this.#all.running < this.#limits.running;
  }

  get #hasPlaceForSuspects(): boolean {
    return this.#all.running < this.#limits.share;
  }

  async take<T>(
    path: readonly string[],
    task: () => Promise<T>,
    trust: Trust = "unknown",
  ): Promise<T> {
    if (trust === TRUSTED) this.#reservedUntil = this.#now() + RESERVED_MS;
    const branch = this.#branchOf([trust, ...path]);
    const isFree =
      this.#hasPlace &&
      (trust !== SUSPECT || this.#hasPlaceForSuspects) &&
      branch.networks.every((network) => network.isOpen);
    if (!isFree) this.#makeRoom(branch);
    this.#eachNetwork(branch, (network, name, parent) => parent.children.set(name, network));
    if (isFree) this.#count(branch, { running: 1, waiting: 0 });
    else await this.#wait(branch);
    try {
      return await task();
    } finally {
      this.#end(branch);
    }
  }

  /** Returns the networks of a path. New ones are not linked to their parents yet. */
  #branchOf(path: readonly string[]): Branch {
    let parent = this.#all;
    const networks = path.map((name, depth) => {
      const known = parent.children.get(name);
      return (parent = known ?? new Network(this.#shareOf(depth, name)));
    });
    return { path, networks };
  }

  #shareOf(depth: number, name: string): () => number {
    const { share } = this.#limits;
    if (depth === 1) return () => share;
    if (depth > 0 || name !== UNKNOWN) return unlimited;
    return () => (this.#now() < this.#reservedUntil ? share : unlimited());
  }

  /** Visits the networks of a branch from the innermost to the outermost, each with its parent. */
  #eachNetwork(
    { path, networks }: Branch,
    visit: (network: Network, name: string, parent: Network) => void,
  ): void {
    for (const [i, network] of [...networks.entries()].toReversed())
      visit(network, path[i] ?? "", networks[i - 1] ?? this.#all);
  }

  #count({ networks }: Branch, more: Load): void {
    for (const network of [this.#all, ...networks]) {
      network.running += more.running;
      network.waiting += more.waiting;
    }
  }

  #wait(branch: Branch): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#count(branch, { running: 0, waiting: 1 });
      branch.networks.at(-1)?.queue.push({
        start: () => {
          this.#count(branch, { running: 1, waiting: -1 });
          resolve();
        },
        reject: () => {
          this.#count(branch, { running: 0, waiting: -1 });
          this.#eachNetwork(branch, (network, name, parent) => {
            if (isEmpty(network)) parent.children.delete(name);
          });
          reject(this.#limits.rejection());
        },
      });
    });
  }

  #end(branch: Branch): void {
    this.#count(branch, { running: -1, waiting: 0 });
    // Each network moves to the end of the turns, or is removed if it is empty.
    this.#eachNetwork(branch, (network, name, parent) => {
      parent.children.delete(name);
      if (!isEmpty(network)) parent.children.set(name, network);
    });
    // The next tasks start in the same step, so that no newcomer can take a place before them. There may be two of them
    // if the reservation of a place has ended.
    while (this.#hasPlace) {
      const next = this.#next();
      if (next === undefined) break;
      next.start();
    }
  }

  #next(): Waiter | undefined {
    const suspects = this.#all.children.get(SUSPECT);
    const next = nextWaiter(this.#all, suspects);
    if (next !== undefined || suspects === undefined) return next;
    return this.#hasPlaceForSuspects ? nextWaiter(suspects) : undefined;
  }

  #makeRoom({ networks }: Branch): void {
    const { waiting, rejection } = this.#limits;
    if (this.#all.waiting < waiting) return;
    let parent = this.#all;
    for (const own of networks) {
      const busiest = busiestChild(parent);
      // A network does not give up a task if it would then have no more waiting tasks than the newcomer's network.
      if (busiest !== undefined && busiest.waiting > own.waiting + 1)
        return newestWaiter(busiest)?.reject();
      parent = own;
    }
    throw rejection();
  }
}

function unlimited(): number {
  return Number.POSITIVE_INFINITY;
}

function isEmpty(network: Network): boolean {
  return network.running + network.waiting === 0;
}

/**
 * Returns the task whose turn it is, ignoring the network `except`. Returns undefined if each network with waiting
 * tasks already runs its share.
 */
function nextWaiter(network: Network, except?: Network): Waiter | undefined {
  if (network.children.size === 0) return network.queue.shift();
  const ready = [...network.children.values()].filter(
    (one) => one.waiting > 0 && one.isOpen && one !== except,
  );
  const idle = ready.filter((one) => one.running === 0);
  const busy = ready.filter((one) => one.running > 0);
  for (const one of [...idle, ...busy]) {
    const found = nextWaiter(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the child with the most waiting tasks; between equals, the one whose turn comes last. */
function busiestChild(network: Network): Network | undefined {
  let busiest: Network | undefined;
  for (const one of network.children.values())
    if (busiest === undefined || one.waiting >= busiest.waiting) busiest = one;
  return busiest;
}

function newestWaiter(network: Network): Waiter | undefined {
  const busiest = busiestChild(network);
  return busiest === undefined ? network.queue.pop() : newestWaiter(busiest);
}
