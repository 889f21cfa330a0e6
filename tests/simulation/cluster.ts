import { Dispatcher } from "../../dispatcher/dispatcher.ts";
import type { Log } from "../../src/lib/log.ts";
import { createStore, type StoreDeps } from "./dispatch-store.ts";
import { createLeases } from "./leases.ts";
import { queueOf } from "./log.ts";
import { Process } from "./process.ts";
import type { Receivers } from "./receivers.ts";
import type { Redis } from "./redis.ts";

interface ClusterDeps extends StoreDeps {
  readonly redis: Redis;
  readonly receivers: Receivers;
}

interface Running {
  readonly process: Process;
  readonly dispatcher: Dispatcher;
  readonly stop: AbortController;
  stopping: boolean;
}

/** The time limit of a stop: DRAIN_MS and RECORD_MS of the dispatcher, its polling, and the last calls. */
const STOP_LIMIT_MS = 7_500;
const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Starts, stops and restarts the dispatcher processes. */
export class Cluster {
  readonly #deps: ClusterDeps;
  #started = 0;
  running: Running[] = [];

  constructor(deps: ClusterDeps) {
    this.#deps = deps;
  }

  /** The processes that run and were not told to stop. */
  get serving(): readonly Process[] {
    return this.running
      .filter((one) => one.process.alive && !one.stopping)
      .map((one) => one.process);
  }

  start(): void {
    const { world, network, redis, receivers } = this.#deps;
    const { random, settings } = world;
    const skewMs = random.between(-settings.faults.skewMs, settings.faults.skewMs);
    const process = new Process(world, `D${++this.#started}`, skewMs);
    world.movedMs = world.nowMs;
    world.trace(process.name, "starts");
    const dispatcher = new Dispatcher({
      clock: process.clock,
      log: world.traced ? this.#log(process) : SILENT,
      schedule: redis.scheduleFor(network, process),
      leases: createLeases(this.#deps, process),
      store: createStore(this.#deps, process),
      deliver: receivers.deliverFor(process),
      retryDelaysMs: settings.retryDelaysMs,
      newUlid: (atMs) => process.newUlid(atMs),
      limits: settings.limits,
    });
    const stop = new AbortController();
    const running: Running = { process, dispatcher, stop, stopping: false };
    this.running = [...this.running.filter((one) => one.process.alive), running];
    void dispatcher.run(running.stop.signal).then(
      () => this.#exited(running, "stopped"),
      (error: Error) => this.#exited(running, error.message),
    );
  }

  /** Sends SIGTERM: the process drains, and is killed if it is too slow. */
  stop(running: Running): void {
    const { world } = this.#deps;
    if (running.stopping || !running.process.alive) return;
    world.fault(`${running.process.name} is told to stop`, STOP_LIMIT_MS);
    running.stopping = true;
    running.process.enter(() => running.stop.abort());
    world.loop.after(3 * STOP_LIMIT_MS, () => running.process.crash("it did not stop"));
  }

  /** Starts processes up to the configured number. */
  replenish(): void {
    const { settings } = this.#deps.world;
    for (let n = this.serving.length; n < settings.processes; n++) this.start();
  }

  #exited({ process }: Running, why: string): void {
    this.#deps.world.trace(process.name, `exits: ${why}`);
    this.#deps.world.movedMs = this.#deps.world.nowMs;
    process.end();
  }

  #log(process: Process): Log {
    const line = (event: string, fields: Record<string, unknown> = {}) => {
      const { stack: _, ...rest } = fields;
      this.#deps.world.trace(process.name, `${event} ${JSON.stringify(rest)}`);
    };
    return { debug() {}, info: line, warn: line, error: line };
  }
}

interface ChaosDeps extends StoreDeps {
  readonly redis: Redis;
  readonly cluster: Cluster;
}

const TICK_MS = 1_000;
/** The largest error of the clock of PostgreSQL. */
const MAX_STEP_MS = 20_000;
/** The time for which a commit or a load may still wait in quarantine after its cause has ended (LONGEST_RETRY_MS). */
const LOCK_BACKOFF_MS = 3_000;
const REFUSAL_BACKOFF_MS = 32_000;

/** Faults that do not belong to a request. Each kind may occur once a second. */
export class Chaos {
  readonly #deps: ChaosDeps;

  constructor(deps: ChaosDeps) {
    this.#deps = deps;
  }

  run(): void {
    const { world } = this.#deps;
    if (!world.faulty) return;
    this.#strikeStores();
    this.#strikeProcesses();
    this.#strikeRows();
    world.loop.after(world.workload.between(0.5, 1.5) * TICK_MS, () => this.run());
  }

  #strikeStores(): void {
    const { world, redis, postgres } = this.#deps;
    const { workload: random, settings } = world;
    const { faults } = settings;
    if (random.chance(faults.flush)) {
      world.fault("Redis is flushed");
      redis.flush();
    }
    if (redis.server.up && random.chance(faults.redisDown)) {
      const ms = random.between(500, 20_000);
      world.fault(`Redis is down for ${Math.round(ms)} ms`, ms + 2_000);
      redis.stop(ms);
    }
    if (random.chance(faults.clockStep)) {
      const target = random.between(-MAX_STEP_MS, MAX_STEP_MS);
      world.step(target - world.stepMs);
    }
    if (postgres.up && random.chance(faults.postgresDown)) {
      const ms = random.between(200, 8_000);
      world.postgresDownMs = world.nowMs + ms;
      world.fault(`Postgres is down for ${Math.round(ms)} ms`, ms);
      postgres.up = false;
      postgres.life += 1;
      world.loop.after(ms, () => {
        postgres.up = true;
      });
    }
  }

  /** Damages rows of a subscription. The other subscriptions must not be late for that. */
  #strikeRows(): void {
    const { world, tables, monitor } = this.#deps;
    const { workload: random, settings } = world;
    const strikesLock = random.chance(settings.faults.lock);
    const strikesRecord = random.chance(settings.faults.refusal);
    const strikesRead = random.chance(settings.faults.unreadable);
    if (!strikesLock && !strikesRecord && !strikesRead) return;
    const row = random.pick([...tables.subscriptions.values()]);
    const ms = random.between(300, 15_000);
    world.faults += 1;
    if (strikesLock) {
      world.trace("FAULT", `${row.id} is locked for ${Math.round(ms)} ms`);
      row.lockedUntilMs = world.nowMs + ms;
      monitor.hindered(row, ms + LOCK_BACKOFF_MS);
    } else if (strikesRead) {
      // Long enough that other subscriptions would be late if they waited for it.
      const damagedMs = 4 * ms;
      world.trace("FAULT", `${row.id} cannot be read for ${Math.round(damagedMs)} ms`);
      row.unreadableUntilMs = world.nowMs + damagedMs;
      monitor.hindered(row, damagedMs + REFUSAL_BACKOFF_MS);
    } else {
      const [head] = queueOf(row);
      if (head === undefined || row.refused !== undefined) return;
      world.trace("FAULT", `${row.id}#${head.sequence} is refused for ${Math.round(ms)} ms`);
      row.refused = head.sequence;
      monitor.hindered(row, ms + REFUSAL_BACKOFF_MS);
      world.loop.after(ms, () => {
        row.refused = undefined;
      });
    }
  }

  #strikeProcesses(): void {
    const { world, cluster } = this.#deps;
    const { workload: random, settings } = world;
    const { faults } = settings;
    for (const running of cluster.running) {
      const { process } = running;
      if (!process.alive) continue;
      if (random.chance(faults.kill)) process.crash("killed");
      else if (random.chance(faults.stop)) cluster.stop(running);
      if (random.chance(faults.cutOff)) {
        const ms = random.between(500, 10_000);
        world.fault(`${process.name} does not reach Postgres for ${Math.round(ms)} ms`, ms);
        process.cutOffUntilMs = world.nowMs + ms;
        process.trouble(ms);
      }
      // A clock that is set back by the duration of a suspension hides both from the process.
      if (!process.paused && random.chance(faults.clockJump)) {
        const mostMs = random.pick([30_000, 3_600_000]);
        const ms = random.between(-mostMs, mostMs);
        world.fault(`the clock of ${process.name} jumps by ${Math.round(ms)} ms`);
        process.skewMs += ms;
      }
    }
    if (cluster.serving.length < settings.processes && random.chance(0.3)) cluster.start();
    else if (cluster.serving.length < 4 && random.chance(faults.join)) cluster.start();
  }
}
