import { LIMITS, type Limits } from "../../dispatcher/delivery/limits.ts";
import type { Prng } from "./prng.ts";

/** The faults of a run and their frequencies. The first three are chances per request. */
interface Faults {
  readonly crash: number;
  readonly pause: number;
  readonly request: number;
  /** The chance that a request whose connection broke is carried out seconds later. */
  readonly longLate: number;
  /** The chance that a POST does not get past our proxy. */
  readonly unsent: number;
  /** The chance per POST that our network is lost. In such runs there are also receivers that cannot be reached. */
  readonly outage: number;
  /** The chance that a look-up takes seconds. */
  readonly slowLookup: number;
  /** Chances per second. */
  readonly flush: number;
  readonly redisDown: number;
  readonly postgresDown: number;
  readonly cutOff: number;
  readonly clockJump: number;
  /** The chance per second of a step of the clock of PostgreSQL. */
  readonly clockStep: number;
  readonly stop: number;
  readonly kill: number;
  readonly join: number;
  /** The chances that a wake is lost, duplicated or late. */
  readonly lostWake: number;
  readonly repeatedWake: number;
  readonly lateWake: number;
  /** The largest error of wall clocks. */
  readonly skewMs: number;
  /**
   * The chances per second that another client locks a row for long, that PostgreSQL begins to reject a record, and
   * that the entries of a subscription cannot be read for a while.
   */
  readonly lock: number;
  readonly refusal: number;
  readonly unreadable: number;
}

export interface Settings {
  readonly processes: number;
  readonly retryDelaysMs: readonly number[];
  /** The duration of the workload and the faults. */
  readonly activeMs: number;
  readonly hourMs: number;
  readonly partners: number;
  readonly reviewsPerPartner: number;
  /** The mean time in ms between two transactions of one partner. */
  readonly writeEveryMs: number;
  readonly eventsPerWrite: number;
  /** The mean time in ms between two changes of the subscriptions of one partner. */
  readonly changeEveryMs: number;
  /** The mean time in ms between two erasures of reviews of one partner; 0 for none. */
  readonly eraseEveryMs: number;
  /** The number of entries that one statement appends. */
  readonly chunk: number;
  /** The number of log events that a load searches for reviews which are not left out. */
  readonly window: number;
  /** The time that each row of a statement costs the server, besides the statement itself. */
  readonly rowMs: number;
  /** The sizes of events, in turn. */
  readonly eventBytes: readonly number[];
  /** The chance that the next mood of a receiver is bad. */
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
  outage: 0,
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

/** The cost of a row in a quarter of the runs, in which a load of a full window takes 50 ms longer. */
const SLOW_ROW_MS = 0.05;
/** The time between two erasures in a fifth of the runs. */
const ERASE_EVERY_MS = 3_000;
/** The window of the real dispatcher. */
const FULL_WINDOW = 1_000;
/** The sizes of events. In a quarter of the runs some are larger than a load may be. */
const SMALL = [800];
const LARGE = [800, 3_000, 20_000, 800, 70_000];
/** The number of events in one write above which it is a flood. */
const FLOOD = 8;

/** Draws the settings of a run. A quarter of the runs is calm: there the schedule must be exact to the millisecond. */
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
    eventBytes: random.seed % 4 === 1 ? LARGE : SMALL,
    eraseEveryMs: random.seed % 5 === 4 ? ERASE_EVERY_MS : 0,
    badReceivers: random.pick([0, 0.2, 0.5, 0.8]),
    faults: random.chance(0.25) ? { ...NO_FAULTS, join: drawJoins(random) } : drawFaults(random),
    limits: random.chance(0.2) ? drawLimits(random) : LIMITS,
  };
  if (random.chance(0.05)) return { ...drawn, ...drawHeldUp(random) };
  // Each load reads all rows of left-out reviews again. With a load for every few events of a flood, a slow server
  // would take hundreds of times as long as with the real window.
  if (drawn.rowMs > 0 && drawn.eventsPerWrite > FLOOD) drawn.window = FULL_WINDOW;
  // A flood takes longer than a run with two requests at once.
  if (drawn.limits === LIMITS) return drawn;
  return { ...drawn, eventsPerWrite: Math.min(drawn.eventsPerWrite, FLOOD) };
}

/** Draws runs in which many reviews have events while locks of seconds hold up the commits of their subscription. */
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

/** Draws limits that a few subscriptions reach, so that most of them wait for their turn. */
function drawLimits(random: Prng): Limits {
  return {
    requests: random.int(2, 6),
    requestsPerHost: random.int(1, 3),
    waitingPerHost: random.int(1, 3),
    waitingSlow: random.int(1, 4),
    actors: random.int(1, 8),
    entries: random.int(4, 200),
    // Not drawn, so that the draws after it stay the same.
    bytes: (1 + (random.seed % 7)) * 50_000,
  };
}

/** Draws processes that join without a fault, so that shards move to them. */
function drawJoins(random: Prng): number {
  return random.chance(0.4) ? random.between(0.005, 0.2) : 0;
}

/** Draws the retry delays. The real ones are rare, because half an hour of waiting makes a run long. */
function drawDelays(random: Prng, slow: boolean): number[] {
  if (slow) return [60_000, 300_000, 1_800_000];
  return random.pick([
    [900, 2_500, 7_000],
    [400, 60, 3_000],
    [5_000, 9_000, 20_000],
  ]);
}

/** Faults that move shards all the time and delay these moves. */
const RESTLESS = { request: 0.01, longLate: 1, stop: 0.15, join: 0.3 };

/** Draws some kinds of faults for a run, because all together would hide each other. */
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
    // Of the seed, because another draw would change all runs.
    outage: random.seed % 4 === 1 ? 0.01 : 0,
    lock: some(0.01, 0.1),
    refusal: some(0.01, 0.05),
    slowLookup: random.chance(0.3) ? random.between(0.005, 0.1) : 0,
    unreadable: some(0.01, 0.05),
  };
  return random.chance(0.1) ? { ...faults, ...RESTLESS } : faults;
}
