/** How much of the bounded work is at hand. */
export interface Load {
  readonly running: number;
  readonly waiting: number;
}

interface Limits {
  /** How many tasks run at once, and how many more may wait. */
  readonly running: number;
  readonly waiting: number;
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
 * Runs a bounded number of tasks at once. Those that wait take turns by the party that they are of: whoever has one
 * running comes after all that have none, so that no party delays another by more than one task, however many it
 * brings. Where no room is left to wait, the party with the most waiting loses its newest.
 */
export function createTurns({ running: places, waiting: room, refusal }: Limits) {
  // The order of the map is that of the turns: whose task has ended goes to the end.
  const lines = new Map<string, Line>();
  let running = 0;
  let waiting = 0;
  return { take, load: (): Load => ({ running, waiting }) };

  async function take<T>(party: string, task: () => Promise<T>): Promise<T> {
    const line = lines.get(party) ?? { waiting: [], running: 0 };
    if (running >= places) makeRoom(line);
    lines.set(party, line);
    if (running < places) begin(line);
    else
      await new Promise<void>((resolve, reject) => {
        waiting++;
        line.waiting.push({
          start: () => {
            waiting--;
            begin(line);
            resolve();
          },
          refuse: () => {
            waiting--;
            reject(refusal());
          },
        });
      });
    try {
      return await task();
    } finally {
      end(party, line);
    }
  }

  function begin(line: Line): void {
    running++;
    line.running++;
  }

  function end(party: string, line: Line): void {
    running--;
    line.running--;
    lines.delete(party);
    if (line.running + line.waiting.length > 0) lines.set(party, line);
    // The place goes to the next in turn at once, so that nobody can take it in between.
    next()?.waiting.shift()?.start();
  }

  function next(): Line | undefined {
    let busy: Line | undefined;
    for (const line of lines.values())
      if (line.waiting.length > 0) {
        if (line.running === 0) return line;
        busy ??= line;
      }
    return busy;
  }

  function makeRoom(own: Line): void {
    if (waiting < room) return;
    let longest = own;
    for (const line of lines.values())
      if (line.waiting.length > longest.waiting.length) longest = line;
    // Its newest would be followed by ours: only a longer line gives way.
    const isLonger = longest.waiting.length > own.waiting.length + 1;
    const loser = isLonger ? longest.waiting.pop() : undefined;
    if (loser === undefined) throw refusal();
    loser.refuse();
  }
}
