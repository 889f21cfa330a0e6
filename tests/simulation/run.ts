import { Changes } from "./changes.ts";
import { Chaos, Cluster } from "./cluster.ts";
import { checkEnd, checkRun, isSettled } from "./check-run.ts";
import { isQueueEmpty, queueOf } from "./log.ts";
import { Monitor } from "./monitor.ts";
import { Network, Server } from "./network.ts";
import { Prng } from "./prng.ts";
import { Receivers } from "./receivers.ts";
import { Redis } from "./redis.ts";
import { drawSettings, type Settings } from "./settings.ts";
import { type SubscriptionRow, Tables } from "./tables.ts";
import { type TraceLine, type Violation, World } from "./world.ts";
import { Writers } from "./writers.ts";

export interface RunResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly virtualMs: number;
  readonly faults: number;
  readonly posts: number;
  readonly settings: Settings;
  readonly trace: readonly TraceLine[];
}

/*
 * The model is simpler than the real stores in these points:
 *
 * - A statement changes everything at one instant. It waits for leases and sequences; a commit also waits for rows that
 *   another client has locked. If two others would wait for each other, either may come first. There are no deadlocks.
 * - A batch dispatch that races with a disabling gives way; the real one makes the disabling wait.
 * - A request whose connection broke is carried out within 30 s, or never.
 * - An erasure changes all events of a review at one instant, and the locks that it takes are never waited for.
 * - Ids of history rows follow the statements; the rows of a review are written by one transaction at a time anyway.
 * - A commit of attempts takes effect at one instant; the real one makes up to three statements with a transaction each.
 * - Bodies, signatures and addresses are real code but not checked.
 * - A process stops only between two tasks of its event loop; its monotonic clock stops while it is suspended.
 * - The clock of PostgreSQL steps by at most 20 s, and decisions by the time before are excused for as long.
 *
 * These states and changes exist only in the real stores; the tests in parentheses have them there:
 *
 * - Partners and accounts that are not active, and entries that are held for them (`integration/dispatcher`), also in
 *   the sequence headers (`integration/delivery/sequence-headers.test.ts`).
 * - A disable by an owner or an operator, and a test that a disabled subscription waits for
 *   (`integration/webhooks/enable-with-test.test.ts`).
 * - The expiry of held entries, `recover`, the redelivery of skipped events, and deleted history (`expiry.test.ts`,
 *   `missing-history.test.ts`, `integration/webhooks`).
 * - Due times that are brought back after a step of the clock, retention, and partners that leave.
 * - Filters, secrets and their rotation, Standard Webhooks, mails and alerts.
 * - Row locks of others than leases, sequences and entries, and a failover that loses commits (`tests/operations`).
 */

const CHECK_MS = 1_000;
/** The longest time to settle, beyond the longest wait for a retry and a batch. */
const SETTLE_MS = 90_000;

/** Runs one seed, which determines everything in the run. */
export function runSeed(seed: number, { traced = false } = {}): RunResult {
  const random = new Prng(seed);
  const settings = drawSettings(random);
  const world = new World({ settings, random, traced });
  const simulation = new Simulation(world);
  simulation.run();
  return {
    seed,
    violation: world.violation,
    virtualMs: world.nowMs,
    faults: world.faults,
    posts: world.posts,
    settings,
    trace: world.lines ?? [],
  };
}

class Simulation {
  readonly #world: World;
  readonly #tables = new Tables();
  readonly #monitor: Monitor;
  readonly #cluster: Cluster;
  readonly #writers: Writers;
  readonly #changes: Changes;
  readonly #chaos: Chaos;
  /** The generator of the erasures. Those of runs without any are as they were before there were erasures. */
  readonly #erasing: Prng;

  constructor(world: World) {
    this.#world = world;
    this.#erasing = new Prng(world.random.seed + 2 ** 31);
    const tables = this.#tables;
    const monitor = new Monitor(world, tables);
    const redis = new Redis(world);
    const postgres = new Server("postgres", { typicalMs: 1.5, worstMs: 60, inOrder: false });
    const stores = { world, network: new Network(world), postgres, tables, monitor, redis };
    this.#monitor = monitor;
    this.#cluster = new Cluster({ ...stores, receivers: new Receivers(world, monitor) });
    this.#writers = new Writers(stores);
    this.#changes = new Changes(stores, this.#writers);
    this.#chaos = new Chaos({ ...stores, cluster: this.#cluster });
  }

  run(): void {
    const { loop, settings } = this.#world;
    this.#populate();
    this.#cluster.replenish();
    this.#chaos.run();
    this.#check();
    loop.after(settings.activeMs, () => this.#calmDown());
    const limitMs =
      settings.activeMs +
      SETTLE_MS +
      Math.max(...settings.retryDelaysMs) +
      3 * settings.hourMs +
      60_000;
    loop.runWhile(
      () => this.#world.violation === undefined && !this.#isDone() && loop.nowMs < limitMs,
    );
    if (this.#world.violation !== undefined) return;
    if (!this.#isDone()) this.#world.violate("no loss", this.#describeUnsettled());
    checkEnd(this.#deps, this.#tellMissed());
  }

  /**
   * Records one more event of each active subscription with sequence headers, so that its receiver learns what it
   * missed, and returns these subscriptions. A change that is under way may enable others later.
   */
  #tellMissed(): readonly SubscriptionRow[] {
    const { loop } = this.#world;
    const targets = [...this.#tables.subscriptions.values()].filter(
      ({ state, sequenceHeaders }) => state === "active" && sequenceHeaders,
    );
    const told = new Map(targets.map((one) => [one, one.lastLogged]));
    const write = (partnerId: number): Promise<void> =>
      this.#writers.write([partnerId], 1).catch(() => write(partnerId));
    for (const { partnerId } of targets) void write(partnerId);
    const isTold = (one: SubscriptionRow) => one.lastLogged > (told.get(one) ?? 0);
    const untilMs = loop.nowMs + SETTLE_MS;
    loop.runWhile(
      () =>
        this.#world.violation === undefined &&
        loop.nowMs < untilMs &&
        !targets.every((one) => isTold(one) && isQueueEmpty(one)),
    );
    return targets;
  }

  get #deps() {
    return {
      world: this.#world,
      tables: this.#tables,
      monitor: this.#monitor,
      cluster: this.#cluster,
    };
  }

  #isDone(): boolean {
    return !this.#world.faulty && isSettled(this.#deps);
  }

  #populate(): void {
    const { settings, workload: random } = this.#world;
    for (let partnerId = 1; partnerId <= settings.partners; partnerId++) {
      const kinds = random.pick([["immediate"], ["immediate", "batch"], ["batch"]] as const);
      for (const kind of kinds) this.#changes.create(partnerId, kind);
      this.#write(partnerId);
      this.#change(partnerId);
      this.#erase(partnerId);
      if (this.#world.random.seed % 3 === 0) this.#renumber(partnerId);
    }
  }

  #renumber(partnerId: number): void {
    const { loop, numbering, settings } = this.#world;
    loop.after(numbering.between(0, 2 * settings.changeEveryMs), () => {
      if (!this.#world.faulty) return;
      const target = this.#tables.slot(partnerId, "immediate");
      if (target !== undefined) this.#ignoringErrors(this.#changes.renumber(target));
      this.#renumber(partnerId);
    });
  }

  #erase(partnerId: number): void {
    const { loop, settings } = this.#world;
    if (settings.eraseEveryMs === 0) return;
    loop.after(this.#erasing.between(0, 2 * settings.eraseEveryMs), () => {
      if (!this.#world.faulty) return;
      this.#ignoringErrors(this.#changes.erase(partnerId, this.#erasing));
      this.#erase(partnerId);
    });
  }

  #write(partnerId: number): void {
    const { loop, workload: random, settings } = this.#world;
    loop.after(random.between(0, 2 * settings.writeEveryMs), () => {
      if (!this.#world.faulty) return;
      const other = random.int(1, settings.partners);
      const partners = random.chance(0.1) && other !== partnerId ? [partnerId, other] : [partnerId];
      this.#ignoringErrors(this.#writers.write(partners, random.int(1, settings.eventsPerWrite)));
      this.#write(partnerId);
    });
  }

  #change(partnerId: number): void {
    const { loop, workload: random, settings } = this.#world;
    loop.after(random.between(0, 2 * settings.changeEveryMs), () => {
      if (!this.#world.faulty) return;
      this.#ignoringErrors(this.#changes.change(partnerId));
      this.#change(partnerId);
    });
  }

  /** Ignores the error of an API transaction, which is rolled back and has no consequence. */
  #ignoringErrors(transaction: Promise<void>): void {
    transaction.catch((error: Error) => this.#world.trace("api", `rolls back: ${error.message}`));
  }

  #check(): void {
    checkRun(this.#deps);
    if (!this.#world.faulty) this.#cluster.replenish();
    this.#world.loop.after(CHECK_MS, () => this.#check());
  }

  /**
   * Ends faults and events, restarts every process, enables most disabled subscriptions, and makes every receiver well.
   */
  #calmDown(): void {
    // Entries that cannot be read would count as late.
    for (const row of this.#tables.subscriptions.values()) row.unreadableUntilMs = 0;
    this.#world.trace("-", "calm from here on");
    this.#world.faulty = false;
    this.#world.troubleMs = Math.max(this.#world.troubleMs, this.#world.nowMs);
    this.#cluster.replenish();
    for (const row of this.#tables.subscriptions.values())
      if (row.state === "disabled" && this.#world.workload.chance(0.7))
        this.#ignoringErrors(this.#changes.enable(row, true));
  }

  #describeUnsettled(): string {
    const left: string[] = [];
    for (const row of this.#tables.subscriptions.values()) {
      const queue = [...queueOf(row)];
      if (row.state !== "disabled" && queue.length + row.batch.length > 0)
        left.push(
          `${row.id} ${queue.length} entries from #${queue[0]?.sequence}, ${row.batch.length} for the batch`,
        );
    }
    return `never settled: ${left.join("; ")}`;
  }
}

/** The number of trace lines that are shown before a violation. */
const LINES = 60;

export function formatLine({ atMs, who, what }: TraceLine): string {
  return `${(atMs / 1_000).toFixed(4).padStart(10)} s  ${who.padEnd(22)} ${what}`;
}

/** Formats the events before a violation: faults, leases, and everything about its subscription. */
export function formatFailure(result: RunResult): string {
  const { seed, violation, trace, settings } = result;
  if (violation === undefined) return `Seed ${seed}: nothing is wrong.`;
  const about = violation.subscriptionId;
  const told = trace.filter(
    ({ who, what }) =>
      about === undefined ||
      who === about ||
      what.includes(about) ||
      who === "FAULT" ||
      who === "VIOLATION" ||
      /starts|exits|goes on|lease|shards|dead|calm/.test(what),
  );
  return [
    `Seed ${seed} violates "${violation.invariant}" after ${(violation.atMs / 1_000).toFixed(3)} s: ${violation.message}`,
    `Settings: ${JSON.stringify(settings)}`,
    `The last ${Math.min(LINES, told.length)} lines${about === undefined ? "" : ` about ${about}`}:`,
    ...told.slice(-LINES).map(formatLine),
  ].join("\n");
}
