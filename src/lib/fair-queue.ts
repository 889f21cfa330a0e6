/** How much of the bounded work is at hand. */
export interface Load {
  readonly running: number;
  readonly waiting: number;
}

interface Limits {
  /** How many tasks run at once, and how many more may wait. */
  readonly running: number;
  readonly waiting: number;
  /** How many of those that run may be of one party. */
  readonly share: number;
  /** What one more is refused with. */
  readonly refusal: () => Error;
}

/** The tasks of one party. */
interface Line {
  readonly waiting: Waiter[];
  running: number;
}

interface Waiter {
  start(): void;
  refuse(): void;
}

/**
 * Runs a bounded number of tasks at once, of which one party has no more than its share: with a share that leaves one
 * place, whoever comes while a single party crowds begins at once. Those that wait take turns by the party that they are
 * of: whoever has one running comes after all that have none, so that no party delays another by more than one task,
 * however many it brings. Where no room is left to wait, the party with the most waiting loses its newest.
 */
export class FairQueue {
  readonly #limits: Limits;
  /** In the order of their turns: whose task has ended goes to the end. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  #waiting = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get load(): Load {
    return { running: this.#running, waiting: this.#waiting };
  }

  async take<T>(party: string, task: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(party) ?? { waiting: [], running: 0 };
    const isFree = this.#running < this.#limits.running && this.#mayBegin(line);
    if (!isFree) this.#makeRoom(line);
    this.#lines.set(party, line);
    if (isFree) this.#begin(line);
    else await this.#wait(line);
    try {
      return await task();
    } finally {
      this.#end(party, line);
    }
  }

  #begin(line: Line): void {
    this.#running++;
    line.running++;
  }

  #wait(line: Line): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting++;
      line.waiting.push({
        start: () => {
          this.#waiting--;
          this.#begin(line);
          resolve();
        },
        refuse: () => {
          this.#waiting--;
          reject(this.#limits.refusal());
        },
      });
    });
  }

  #end(party: string, line: Line): void {
    this.#running--;
    line.running--;
    this.#lines.delete(party);
    if (line.running + line.waiting.length > 0) this.#lines.set(party, line);
    // The place goes to the next in turn at once, so that nobody can take it in between.
    this.#next()?.waiting.shift()?.start();
  }

  #mayBegin(line: Line): boolean {
    return line.running < this.#limits.share;
  }

  #next(): Line | undefined {
    let busy: Line | undefined;
    for (const line of this.#lines.values())
      if (line.waiting.length > 0) {
        if (line.running === 0) return line;
        if (this.#mayBegin(line)) busy ??= line;
      }
    return busy;
  }

  #makeRoom(own: Line): void {
    const { waiting: room, refusal } = this.#limits;
    if (this.#waiting < room) return;
    let longest = own;
    for (const line of this.#lines.values())
      if (line.waiting.length > longest.waiting.length) longest = line;
    // A line that would be as short as ours afterwards does not give way.
    const isLonger = longest.waiting.length > own.waiting.length + 1;
    const loser = isLonger ? longest.waiting.pop() : undefined;
    if (loser === undefined) throw refusal();
    loser.refuse();
  }
}
