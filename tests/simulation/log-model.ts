/*
 * A model of the log of one subscription, small enough to visit every state: appends, loads, sends, commits that wait
 * for the offset or lose their response, skips, a change of the ordering, and a takeover by a second dispatcher. It
 * states the rules once more, without tables, and checks each state against the invariants of the log.
 */

export const MODEL_FAULTS = [
  "rowless-pass",
  "forgotten-retry",
  "doubled-entry",
  "unmoved-skip",
  "early-load",
  "offset-twice",
  "skipping-attempt",
  "rows-ahead",
  "unseen-rows",
] as const;

export interface ModelOptions {
  /**
   * One entry per letter, which is its review. A capital stands for a log event, any other letter for an entry that has
   * a row at once.
   */
  readonly entries: string;
  readonly ordering: "subscription" | "review";
  /**
   * Events that may happen at any time, once each: a waiting commit, a skip, a takeover, another ordering, appends one
   * by one.
   */
  readonly events: string;
  readonly injected?: (typeof MODEL_FAULTS)[number] | undefined;
}

/** An entry in the memory of a dispatcher. */
interface Held {
  readonly phase: "queued" | "delivered" | "retry";
  readonly isLogged: boolean;
  readonly attempt: number;
}
type Memory = readonly (Held | undefined)[];

/** A commit that waits for the offset. It sees the rows as of its beginning. */
interface Commit {
  readonly by: 0 | 1;
  readonly records: Memory;
  readonly seenThrough: number;
  readonly seenRows: readonly number[];
  /** The process was told that the commit failed, and commits again. */
  readonly isLost: boolean;
}

/** A state. Entries are indexed from 0: sequence n has the index n - 1. */
interface State {
  readonly appended: number;
  readonly ordering: ModelOptions["ordering"];
  readonly settledThrough: number;
  readonly skippedThrough: number;
  /** The attempt of each row; 0 without a row. */
  readonly rows: readonly number[];
  readonly ended: readonly boolean[];
  /** The attempt whose success is recorded; 0 for none. */
  readonly succeeded: readonly number[];
  readonly held: readonly [Memory, Memory];
  readonly holder: 0 | 1;
  /** The commit that waits; other commits are immediate. */
  readonly commit: Commit | undefined;
  /** The events that may still happen, each of them once. */
  readonly left: string;
}

/** The number of log events that a load searches if it leaves out reviews, and that one pass passes. */
const WINDOW = 1;

export interface ModelResult {
  readonly states: number;
  readonly violation: string | undefined;
}

/** Visits every state, or all up to the first one that violates an invariant. */
export function explore(options: ModelOptions): ModelResult {
  const none: Memory = Array.from(options.entries, () => undefined);
  const begun = options.events.includes("append") ? 0 : none.length;
  const first: State = {
    appended: begun,
    ordering: options.ordering,
    settledThrough: 0,
    skippedThrough: 0,
    rows: none.map((_, i) => (i < begun && !isInLog(options, i) ? 1 : 0)),
    ended: none.map(() => false),
    succeeded: none.map(() => 0),
    held: [none, none],
    holder: 0,
    commit: undefined,
    left: options.events,
  };
  const known = new Set([keyOf(first)]);
  const waiting = [first];
  try {
    for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
      const next = [...new Step(state, options).next()];
      if (next.length === 0 && state.ended.includes(false)) throw new Error("an entry is stuck");
      for (const one of next) {
        const key = keyOf(one);
        if (known.has(key)) continue;
        known.add(key);
        if (one.settledThrough < state.settledThrough) throw new Error("the offset fell");
        checkPlaces(one, options);
        waiting.push(one);
      }
    }
  } catch (error) {
    return {
      states: known.size,
      violation: error instanceof Error ? error.message : String(error),
    };
  }
  return { states: known.size, violation: undefined };
}

const textOf = (memory: Memory) =>
  memory
    .map((one) => (one ? `${one.phase[0]}${one.attempt}${one.isLogged ? "l" : ""}` : ""))
    .join();

function keyOf({ rows, ended, succeeded, held: [a, b], commit, ...rest }: State): string {
  const waits = commit && [commit.by, textOf(commit.records), commit.seenThrough, commit.isLost];
  const lists = [rows, ended.map(Number), succeeded, commit?.seenRows ?? []];
  return `${Object.values(rest).join()} ${lists.join(";")} ${textOf(a)} ${textOf(b)} ${waits?.join()}`;
}

const isInLog = ({ entries }: ModelOptions, i: number) => /[A-Z]/.test(entries[i] ?? "");

/** Checks that each entry is in one place: in the log after the offset, in a row, or ended. */
function checkPlaces(state: State, options: ModelOptions): void {
  const { appended, rows, ended, settledThrough, skippedThrough } = state;
  for (let i = 0; i < appended; i++) {
    const isQueued = isInLog(options, i) && i >= settledThrough;
    const places = [isQueued, (rows[i] ?? 0) > 0 && i >= skippedThrough, ended[i]].filter(Boolean);
    if (places.length !== 1) throw new Error(`an entry is in ${places.length} places`);
  }
}

class Step {
  readonly #state: State;
  readonly #options: ModelOptions;

  constructor(state: State, options: ModelOptions) {
    this.#state = state;
    this.#options = options;
  }

  *next(): Generator<State> {
    const { appended, rows, left, holder, held, commit, ordering } = this.#state;
    if (appended < rows.length) {
      const own = rows.map((row, i) => (i === appended && !this.#isLogged(i) ? 1 : row));
      yield this.#with({ appended: appended + 1, rows: own });
    }
    yield* this.#load();
    yield* this.#send();
    yield* this.#commits(0);
    yield* this.#commits(1);
    if (commit !== undefined) yield this.#apply(commit, commit.isLost);
    if (ordering === "review") yield* this.#pass();
    if (left.includes("skip")) yield this.#skip();
    if (left.includes("takeover")) yield* this.#takeOver();
    if (left.includes("order") && !held[holder].some(Boolean))
      yield this.#with({ ordering: ordering === "review" ? "subscription" : "review" }, "order");
  }

  #with(changed: Partial<State>, used?: string): State {
    const { left } = this.#state;
    return { ...this.#state, ...changed, left: used === undefined ? left : left.replace(used, "") };
  }

  #isLogged(i: number): boolean {
    return isInLog(this.#options, i);
  }

  #laneOf(i: number): string {
    return this.#state.ordering === "review" ? (this.#options.entries[i] ?? "").toUpperCase() : "";
  }

  #hold(by: 0 | 1, change: (one: Held | undefined, i: number) => Held | undefined): State {
    const { held } = this.#state;
    const own = held[by].map(change);
    return this.#with({ held: by === 0 ? [own, held[1]] : [held[0], own] });
  }

  /**
   * Loads entries: with a lane per review those of reviews that have none in memory, otherwise those after the ones in
   * memory.
   */
  *#load(): Generator<State> {
    const { appended, rows, held, holder, ordering, settledThrough, skippedThrough } = this.#state;
    const { injected } = this.#options;
    const own = held[holder];
    const byReview = ordering === "review";
    if (!byReview && own.some((one) => one?.phase === "retry")) return;
    const after = byReview ? -1 : own.findLastIndex(Boolean);
    const busy = new Set(byReview ? own.flatMap((one, i) => (one ? [this.#laneOf(i)] : [])) : []);
    const isAsked = (i: number) => !busy.has(this.#laneOf(i));
    const begin = Math.max(after + 1, settledThrough - (injected === "early-load" ? 1 : 0));
    const places = Array.from({ length: appended }, (_, i) => i);
    const logged = places.filter((i) => this.#isLogged(i) && i >= begin);
    const window = busy.size > 0 ? logged.slice(0, WINDOW) : logged;
    const events = window.filter(isAsked);
    // No entry with a row is shown after the window.
    const isCut = window.length < logged.length && injected !== "rows-ahead";
    const end = isCut ? (events.at(-1) ?? settledThrough - 1) : appended;
    const shown = new Map<number, Held>();
    for (const i of places)
      if (rows[i] && i >= skippedThrough && i > after && i <= end && isAsked(i))
        shown.set(i, { phase: "queued", isLogged: false, attempt: rows[i] });
    for (const i of events) shown.set(i, { phase: "queued", isLogged: true, attempt: 1 });
    for (const [i, { attempt }] of shown)
      if (this.#state.ended[i] || this.#state.succeeded[i] === attempt)
        throw new Error("a load shows what was delivered or skipped");
    if (shown.size > 0) yield this.#hold(holder, (one, i) => shown.get(i) ?? one);
  }

  /** Sends the head of a lane and takes the response at once. No other process knows of it until the commit. */
  *#send(): Generator<State> {
    const { held, holder, ended } = this.#state;
    const own = held[holder];
    for (const [i, one] of own.entries()) {
      const lane = own.filter((_, n) => this.#laneOf(n) === this.#laneOf(i));
      const isBlocked = lane.some((other) => other?.phase === "retry");
      if (one?.phase !== "queued" || isBlocked) continue;
      if (lane.find((other) => other?.phase === "queued") !== one) continue;
      for (let n = 0; n < i; n++)
        if (!ended[n] && own[n]?.phase !== "delivered" && this.#laneOf(n) === this.#laneOf(i))
          throw new Error("an entry is sent before one that it follows");
      const phases = one.attempt === 1 ? (["delivered", "retry"] as const) : ["delivered" as const];
      for (const phase of phases)
        yield this.#hold(holder, (other, n) => (n === i ? { ...one, phase } : other));
    }
  }

  /** Commits at once, or begins a commit that waits. */
  *#commits(by: 0 | 1): Generator<State> {
    const { held, commit, left, settledThrough: seenThrough, rows: seenRows } = this.#state;
    const records = held[by].map((one) => (one?.phase === "queued" ? undefined : one));
    if (!records.some(Boolean) || (commit?.by === by && !commit.isLost)) return;
    const begun = { by, records, seenThrough, seenRows, isLost: false };
    yield this.#apply(begun, false);
    if (!left.includes("wait")) return;
    yield this.#with({ commit: begun }, "wait");
    yield this.#with({ commit: { ...begun, isLost: true } }, "wait");
  }

  /** Applies a commit, and removes its entries from the memory of the process if the response arrives. */
  #apply(commit: Commit, isLost: boolean): State {
    const { records, by } = commit;
    const waiting = this.#state.commit === commit ? undefined : this.#state.commit;
    const changed = this.#with({ ...this.#changes(commit), commit: waiting });
    if (isLost) return changed;
    const lanes = new Set(
      records.flatMap((one, i) => (one?.phase === "retry" ? [this.#laneOf(i)] : [])),
    );
    // Entries behind one that waits are read again.
    return new Step(changed, this.#options).#hold(by, (one, i) =>
      records[i] !== undefined || lanes.has(this.#laneOf(i)) ? undefined : one,
    );
  }

  #changes({ records, seenThrough, seenRows }: Commit): Partial<State> {
    const { injected } = this.#options;
    const { settledThrough, skippedThrough } = this.#state;
    const [rows, ended] = [[...this.#state.rows], [...this.#state.ended]];
    const succeeded = [...this.#state.succeeded];
    const isBlind = injected === "unseen-rows" && seenThrough !== settledThrough;
    const moved = records.map((one, i) => {
      const isAhead = i >= settledThrough || injected === "offset-twice";
      return one?.isLogged === true && isAhead;
    });
    const last = moved.includes(true) ? moved.lastIndexOf(true) + 1 : settledThrough;
    this.#giveRows(rows, last, moved);
    for (const [i, one] of records.entries()) {
      if (one === undefined) continue;
      const { phase, attempt } = one;
      if (phase === "delivered") succeeded[i] = attempt;
      const isThere = i >= skippedThrough && rows[i] === attempt;
      if (!moved[i] && (!isThere || (isBlind && seenRows[i] !== attempt))) continue;
      if (phase === "delivered") [rows[i], ended[i]] = [0, true];
      else rows[i] = injected === "forgotten-retry" && moved[i] ? 0 : attempt + 1;
    }
    return { rows, ended, succeeded, settledThrough: last };
  }

  /** Gives rows to the events that the offset passes and the commit does not record. */
  #giveRows(rows: number[], last: number, recorded: readonly boolean[] = []): void {
    const { injected } = this.#options;
    if (injected === "rowless-pass") return;
    for (let i = this.#state.settledThrough; i < last; i++)
      if (this.#isLogged(i) && recorded[i] !== true)
        rows[i] = injected === "skipping-attempt" ? 2 : 1;
  }

  *#pass(): Generator<State> {
    const { appended, settledThrough } = this.#state;
    let last = settledThrough;
    while (last < appended && !this.#isLogged(last)) last += 1;
    if (last === appended) return;
    const rows = [...this.#state.rows];
    this.#giveRows(rows, last + WINDOW);
    const isMoved = this.#options.injected !== "doubled-entry";
    yield this.#with({ rows, settledThrough: isMoved ? last + WINDOW : settledThrough });
  }

  #skip(): State {
    const { appended, settledThrough, ended } = this.#state;
    const moved = this.#options.injected === "unmoved-skip" ? settledThrough : appended;
    const all = ended.map((one, i) => one || i < appended);
    return this.#with({ settledThrough: moved, skippedThrough: appended, ended: all }, "skip");
  }

  /**
   * Moves the shard to the other dispatcher: from a crashed one, whose records are lost, or from one that has released
   * it and still has successes to record.
   */
  *#takeOver(): Generator<State> {
    const { held, commit } = this.#state;
    const then = this.#with({ holder: 1 }, "takeover");
    const given = held[0].map((one) => (one?.phase === "delivered" ? one : undefined));
    if (!held[0].some((one) => one?.phase === "retry")) yield { ...then, held: [given, held[1]] };
    if (commit === undefined) yield { ...then, held: [held[1], held[1]] };
  }
}
