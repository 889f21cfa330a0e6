/** How much of the bounded work is at hand. */
export interface Load {
  readonly running: number;
  readonly waiting: number;
}

interface Limits {
  /** How many tasks run at once, and how many more may wait. */
  readonly running: number;
  readonly waiting: number;
  /** How many of those that run may be of one outermost network. */
  readonly share: number;
  /** What one more is refused with. */
  readonly refusal: () => Error;
}

/** The tasks of one network. Those of an outer network are the tasks of all networks within it. */
class Line {
  /** The lines of the networks within this one, by name, in the order of their turns. */
  readonly within = new Map<string, Line>();
  /** The tasks that wait here; empty where there are lines within. */
  readonly queue: Waiter[] = [];
  running = 0;
  waiting = 0;
}

/** A network by its line and the lines around it, outermost first. */
interface Place {
  readonly path: readonly string[];
  readonly lines: readonly Line[];
}

interface Waiter {
  start(): void;
  refuse(): void;
}

/**
 * Runs a bounded number of tasks at once and takes turns by network. A network is given as a path, such as an IPv6 /48,
 * its /56 and its /64: turns go round the outermost networks, then round those within, so that a crowd in many small
 * networks counts as the one network around them.
 *
 * A network that has a task running comes after all that have none, so no network delays another by more than one task.
 * An outermost network never runs more than its share: with a share that leaves one place, a newcomer begins at once
 * beside a single crowd. When no place to wait is left, the network with the most waiting loses its newest task. A
 * newcomer is therefore refused only when every place is taken by another network, or by its own.
 */
export class FairQueue {
  readonly #limits: Limits;
  readonly #all = new Line();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get load(): Load {
    return { running: this.#all.running, waiting: this.#all.waiting };
  }

  async take<T>(path: readonly string[], task: () => Promise<T>): Promise<T> {
    const place = this.#placeOf(path);
    const [outermost] = place.lines;
    const isFree =
      this.#all.running < this.#limits.running && (outermost?.running ?? 0) < this.#limits.share;
    if (!isFree) this.#makeRoom(place);
    this.#eachLine(place, (line, name, around) => around.within.set(name, line));
    if (isFree) this.#count(place, { running: 1, waiting: 0 });
    else await this.#wait(place);
    try {
      return await task();
    } finally {
      this.#end(place);
    }
  }

  /** The lines of a path. Those of networks without a task are new and not among the others yet. */
  #placeOf(path: readonly string[]): Place {
    let around = this.#all;
    const lines = path.map((name) => (around = around.within.get(name) ?? new Line()));
    return { path, lines };
  }

  /** Visits the lines of a place from the innermost to the outermost, each with the one around it. */
  #eachLine({ path, lines }: Place, visit: (line: Line, name: string, around: Line) => void): void {
    for (const [i, line] of [...lines.entries()].toReversed())
      visit(line, path[i] ?? "", lines[i - 1] ?? this.#all);
  }

  #count({ lines }: Place, more: Load): void {
    for (const line of [this.#all, ...lines]) {
      line.running += more.running;
      line.waiting += more.waiting;
    }
  }

  #wait(place: Place): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#count(place, { running: 0, waiting: 1 });
      place.lines.at(-1)?.queue.push({
        start: () => {
          this.#count(place, { running: 1, waiting: -1 });
          resolve();
        },
        refuse: () => {
          this.#count(place, { running: 0, waiting: -1 });
          this.#eachLine(place, (line, name, around) => {
            if (isEmpty(line)) around.within.delete(name);
          });
          reject(this.#limits.refusal());
        },
      });
    });
  }

  #end(place: Place): void {
    this.#count(place, { running: -1, waiting: 0 });
    // Each network goes to the end of the turns, or out of them.
    this.#eachLine(place, (line, name, around) => {
      around.within.delete(name);
      if (!isEmpty(line)) around.within.set(name, line);
    });
    // The next task starts in the same step, so that no newcomer can take the place in between.
    nextWaiter(this.#all, this.#limits.share)?.start();
  }

  #makeRoom({ lines }: Place): void {
    const { waiting, refusal } = this.#limits;
    if (this.#all.waiting < waiting) return;
    let around = this.#all;
    for (const own of lines) {
      const longest = longestWithin(around);
      // A network that would have as few as ours afterwards does not give way.
      if (longest !== undefined && longest.waiting > own.waiting + 1)
        return newestWaiter(longest)?.refuse();
      around = own;
    }
    throw refusal();
  }
}

function isEmpty(line: Line): boolean {
  return line.running + line.waiting === 0;
}

function nextWaiter(line: Line, share = Number.POSITIVE_INFINITY): Waiter | undefined {
  if (line.within.size === 0) return line.queue.shift();
  let busy: Line | undefined;
  for (const one of line.within.values()) {
    if (one.waiting === 0 || one.running >= share) continue;
    if (one.running === 0) return nextWaiter(one);
    busy ??= one;
  }
  return busy && nextWaiter(busy);
}

/** Of several with as many the one whose turn is last. */
function longestWithin(line: Line): Line | undefined {
  let longest: Line | undefined;
  for (const one of line.within.values())
    if (longest === undefined || one.waiting >= longest.waiting) longest = one;
  return longest;
}

function newestWaiter(line: Line): Waiter | undefined {
  const longest = longestWithin(line);
  return longest === undefined ? line.queue.pop() : newestWaiter(longest);
}
