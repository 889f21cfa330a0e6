import { queueOf } from "./log.ts";
import type { Cluster } from "./cluster.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Redis } from "./redis.ts";

interface ChaosDeps extends StoreDeps {
  readonly redis: Redis;
  readonly cluster: Cluster;
}

const TICK_MS = 1_000;
/** How wrong the clock of Postgres is at the most. */
const MAX_STEP_MS = 20_000;
/** How long after it became possible again a commit or a load may still be left alone (LONGEST_RETRY_MS). */
const LOCK_BACKOFF_MS = 3_000;
const REFUSAL_BACKOFF_MS = 32_000;

/** What goes wrong by itself, not at a request: once a second each kind may strike. */
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

  /** Not a fault that excuses lateness: only the one subscription may be late. */
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
      // Long enough for those to be late that must not wait for it.
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
      // A clock that is set back by as much as its machine was suspended tells nobody of either.
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
