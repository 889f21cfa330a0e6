import { LIMITS, type Limits } from "../../dispatcher/delivery/limits.ts";
import type { Prng } from "./prng.ts";

/** What may go wrong in a run, and how often. The first three are chances per request. */
interface Faults {
  readonly crash: number;
  readonly pause: number;
  readonly request: number;
  /** Chance that a request whose connection broke is carried out seconds later. */
  readonly longLate: number;
  /** Chance that a POST does not get past our own proxy. */
  readonly unsent: number;
  /** Chance that a look-up takes seconds. */
  readonly slowLookup: number;
  /** Chances per second. */
  readonly flush: number;
  readonly redisDown: number;
  readonly postgresDown: number;
  readonly cutOff: number;
  readonly clockJump: number;
  /** The same of Postgres' clock. */
  readonly clockStep: number;
  readonly stop: number;
  readonly kill: number;
  readonly join: number;
  /** Chances that a wake is never sent, sent twice, or heard late. */
  readonly lostWake: number;
  readonly repeatedWake: number;
  readonly lateWake: number;
  /** How wrong wall clocks are at the most. */
  readonly skewMs: number;
  /**
   * Chances per second that somebody locks a row for long, that Postgres begins to refuse a record, and that the entries
   * of a subscription cannot be read for a while.
   */
  readonly lock: number;
  readonly refusal: number;
  readonly unreadable: number;
}

export interface Settings {
  readonly processes: number;
  readonly retryDelaysMs: readonly number[];
  /** How long the workload and the faults go on. */
  readonly activeMs: number;
  readonly hourMs: number;
  readonly partners: number;
  readonly reviewsPerPartner: number;
  /** Mean ms between two transactions of one partner. */
  readonly writeEveryMs: number;
  readonly eventsPerWrite: number;
  /** Mean ms between two actions on the subscriptions of one partner. */
  readonly changeEveryMs: number;
  /** How many entries one statement appends. */
  readonly chunk: number;
  /** How many events of a log a load looks through for those of reviews that are not left out. */
  readonly window: number;
  /** What each row that a statement reads or writes costs the server, besides the statement itself. */
  readonly rowMs: number;
  /** Chance that the next mood of a receiver is a bad one. */
  readonly badReceivers: number;
  readonly faults: Faults;
  readonly limits: Limits;
}

export const NO_FAULTS: Faults = {
  crash: 0,
  pause: 0,
  request: 0,
  longLate: 0,
  unsent: 0,
  slowLookup: 0,
  flush: 0,
  redisDown: 0,
  postgresDown: 0,
  cutOff: 0,
  clockJump: 0,
  clockStep: 0,
  stop: 0,
  kill: 0,
  join: 0,
  lostWake: 0,
  repeatedWake: 0,
  lateWake: 0,
  skewMs: 0,
  lock: 0,
  refusal: 0,
  unreadable: 0,
};

/** In a quarter of the runs the server is so slow that a load of a full window takes 50 ms longer. */
const SLOW_ROW_MS = 0.05;
/** As many events as the dispatcher looks through. */
const FULL_WINDOW = 1_000;
/** More events in one write than this are a flood. */
const FLOOD = 8;

/** A quarter of the runs is calm: there the schedule has to be kept to the millisecond. */
export function drawSettings(random: Prng): Settings {
  const slow = random.chance(0.05);
  const drawn = {
    processes: random.int(1, 3),
    retryDelaysMs: drawDelays(random, slow),
    activeMs: slow ? random.between(200_000, 900_000) : random.between(15_000, 60_000),
    hourMs: random.between(1_500, 12_000),
    partners: random.chance(0.15) ? random.int(8, 15) : random.int(2, 6),
    reviewsPerPartner: random.chance(0.2) ? random.int(10, 40) : random.int(1, 5),
    writeEveryMs: slow ? random.between(5_000, 30_000) : random.between(300, 4_000),
    eventsPerWrite: random.chance(0.12) ? random.int(35, 100) : random.int(1, FLOOD),
    changeEveryMs: random.between(4_000, 30_000),
    chunk: random.pick([2, 3, 7, 1_000]),
    window: random.pick([4, 5, 8, FULL_WINDOW]),
    rowMs: random.seed % 4 === 3 ? SLOW_ROW_MS : 0,
    badReceivers: random.pick([0, 0.2, 0.5, 0.8]),
    faults: random.chance(0.25) ? { ...NO_FAULTS, join: drawJoins(random) } : drawFaults(random),
    limits: random.chance(0.2) ? drawLimits(random) : LIMITS,
  };
  if (random.chance(0.05)) return { ...drawn, ...drawHeldUp(random) };
  // Each load reads again all rows of the reviews that are left out. With one load for every few events of a flood, a slow
  // server would need hundreds of times as long for them as it does with the real window.
  if (drawn.rowMs > 0 && drawn.eventsPerWrite > FLOOD) drawn.window = FULL_WINDOW;
  // Two requests at a time take longer for a flood than a run lasts.
  if (drawn.limits === LIMITS) return drawn;
  return { ...drawn, eventsPerWrite: Math.min(drawn.eventsPerWrite, FLOOD) };
}

/** Many reviews have events while the commits of their subscription are held up, by locks that last for seconds. */
function drawHeldUp(random: Prng): Partial<Settings> {
  return {
    activeMs: random.between(10_000, 20_000),
    partners: 2,
    reviewsPerPartner: random.int(100, 300),
    writeEveryMs: random.between(200, 500),
    eventsPerWrite: random.int(60, 150),
    badReceivers: 0,
    faults: { ...NO_FAULTS, lock: random.between(0.2, 0.5), kill: random.between(0, 0.05) },
    limits: LIMITS,
  };
}

/** Bounds that a few subscriptions reach: then most wait for their turn, known by name alone. */
function drawLimits(random: Prng): Limits {
  return {
    requests: random.int(2, 6),
    requestsPerHost: random.int(1, 3),
    waitingPerHost: random.int(1, 3),
    waitingSlow: random.int(1, 4),
    actors: random.int(1, 8),
    entries: random.int(4, 200),
  };
}

/** Processes join without any fault too, and shards move to them. */
function drawJoins(random: Prng): number {
  return random.chance(0.4) ? random.between(0.005, 0.2) : 0;
}

/** The real delays are rare, because waiting for half an hour makes a run long. */
function drawDelays(random: Prng, slow: boolean): number[] {
  if (slow) return [60_000, 300_000, 1_800_000];
  return random.pick([
    [900, 2_500, 7_000],
    [400, 60, 3_000],
    [5_000, 9_000, 20_000],
  ]);
}

/** Faults that move shards all the time, and delay what was to move them. */
const RESTLESS = { request: 0.01, longLate: 1, stop: 0.15, join: 0.3 };

/** Draws some kinds of faults for a run; all of them together would hide each other. */
function drawFaults(random: Prng): Faults {
  const some = (low: number, high: number) => (random.chance(0.4) ? random.between(low, high) : 0);
  const faults = {
    crash: some(0.000_1, 0.001),
    pause: some(0.000_1, 0.002),
    request: some(0.000_5, 0.01),
    flush: some(0.005, 0.08),
    redisDown: some(0.005, 0.03),
    postgresDown: some(0.003, 0.02),
    cutOff: some(0.005, 0.03),
    clockJump: some(0.005, 0.03),
    clockStep: some(0.005, 0.05),
    stop: some(0.005, 0.2),
    kill: some(0.005, 0.05),
    join: drawJoins(random),
    lostWake: some(0.05, 1),
    repeatedWake: some(0.05, 0.5),
    lateWake: some(0.05, 0.5),
    skewMs: some(5, random.pick([2_000, 3_600_000])),
    longLate: some(0.2, 1),
    unsent: random.chance(0.2) ? random.between(0.01, 0.5) : 0,
    lock: some(0.01, 0.1),
    refusal: some(0.01, 0.05),
    slowLookup: random.chance(0.3) ? random.between(0.005, 0.1) : 0,
    unreadable: some(0.01, 0.05),
  };
  return random.chance(0.1) ? { ...faults, ...RESTLESS } : faults;
}
