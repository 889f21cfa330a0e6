import { Dispatcher } from "../../dispatcher/dispatcher.ts";
import type { Log } from "../../src/lib/log.ts";
import { createStore, type StoreDeps } from "./dispatch-store.ts";
import { createLeases } from "./leases.ts";
import { Process } from "./process.ts";
import type { Receivers } from "./receivers.ts";
import type { Redis } from "./redis.ts";

interface ClusterDeps extends StoreDeps {
  readonly redis: Redis;
  readonly receivers: Receivers;
}

interface Running {
  readonly process: Process;
  readonly stop: AbortController;
  stopping: boolean;
}

/** How long a stop may take: DRAIN_MS and RECORD_MS of the dispatcher, its polling, and the calls on the way out. */
const STOP_LIMIT_MS = 7_500;
const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** The dispatcher processes, and what starts them again. */
export class Cluster {
  readonly #deps: ClusterDeps;
  #started = 0;
  running: Running[] = [];

  constructor(deps: ClusterDeps) {
    this.#deps = deps;
  }

  /** The processes that neither died nor were told to stop. */
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
    const running: Running = { process, stop: new AbortController(), stopping: false };
    this.running = [...this.running.filter((one) => one.process.alive), running];
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
    void dispatcher.run(running.stop.signal).then(
      () => this.#exited(running, "stopped"),
      (error: Error) => this.#exited(running, error.message),
    );
  }

  /** Sends SIGTERM: the process drains, and is killed if it is not gone in time. */
  stop(running: Running): void {
    const { world } = this.#deps;
    if (running.stopping || !running.process.alive) return;
    world.fault(`${running.process.name} is told to stop`, STOP_LIMIT_MS);
    running.stopping = true;
    running.process.enter(() => running.stop.abort());
    world.loop.after(3 * STOP_LIMIT_MS, () => running.process.crash("it did not stop"));
  }

  /** Brings the number of those that serve up to what it should be. */
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
