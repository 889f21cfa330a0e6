import type { Prng } from "../../simulation/prng.ts";
import type { ChaosNames } from "./names.ts";
import { nowMs } from "./now.ts";
import type { Supervised } from "./processes.ts";
import type { ChaosPostgres } from "./postgres.ts";
import type { ChaosRedis } from "./redis.ts";
import type { Fault } from "../../verdicts/facts.ts";

export type Moods = "calm" | "full";

interface FaultDeps {
  readonly random: Prng;
  readonly moods: Moods;
  readonly postgres: ChaosPostgres;
  readonly redis: ChaosRedis;
  readonly names: ChaosNames | undefined;
  readonly dispatchers: readonly Supervised[];
  readonly apis: readonly Supervised[];
  readonly faults: Fault[];
  /** The only target of drawn faults; undefined for all. */
  readonly only: string | undefined;
}

interface Kind {
  readonly kind: string;
  readonly target: Fault["target"];
  readonly isCalm?: boolean;
  /** How long clients and processes may still be affected after the fault, because nothing notifies them of its end. */
  readonly lastsMs?: number;
  readonly play: (deps: FaultDeps, one: Supervised) => Promise<void> | void;
}

const LEAST = 5;
const MOST = 8;
/** A lease lasts four seconds: shorter pauses keep it, longer ones lose it. */
const PAUSE_MS = [500, 8_000] as const;
const DOWN_MS = [0, 3_000] as const;

/** The share of commits whose answer the proxy loses. */
const LOST_SHARE = 0.1;

/** Every round begins with this fault, because clients' answers depend most on it. */
const FIRST: Kind = {
  kind: "statements cancelled, and answers to commits lost",
  target: "postgres",
  isCalm: true,
  async play({ random, postgres }) {
    postgres.proxy.losesCommit = () => random.chance(LOST_SHARE);
    await postgres.hitStatements(random.between(5_000, 8_000));
    postgres.proxy.losesCommit = () => false;
  },
};
const KINDS: readonly Kind[] = [
  FIRST,
  {
    kind: "column retyped",
    target: "postgres",
    isCalm: true,
    play: ({ random, postgres }) => postgres.retypeColumn(random.between(...DOWN_MS)),
  },
  {
    kind: "kill -9",
    target: "dispatcher",
    isCalm: true,
    play: ({ random }, one) => one.kill(random.between(...DOWN_MS)),
  },
  {
    kind: "SIGSTOP",
    target: "dispatcher",
    play: ({ random }, one) => one.pause(random.between(...PAUSE_MS)),
  },
  {
    kind: "kill -9",
    target: "api",
    play: ({ random }, one) => one.kill(random.between(...DOWN_MS)),
  },
  {
    kind: "SIGSTOP",
    target: "api",
    play: ({ random }, one) => one.pause(random.between(...PAUSE_MS)),
  },
  {
    kind: "kill -9",
    target: "postgres",
    play: ({ random, postgres }) => postgres.kill(random.between(...DOWN_MS)),
  },
  {
    kind: "immediate shutdown",
    target: "postgres",
    play: ({ random, postgres }) => postgres.immediate(random.between(...DOWN_MS)),
  },
  {
    kind: "SIGSTOP",
    target: "postgres",
    play: ({ random, postgres }) => postgres.pause(random.between(...PAUSE_MS)),
  },
  {
    kind: "backends terminated",
    target: "postgres",
    isCalm: true,
    play: ({ postgres }) => postgres.terminate(),
  },
  {
    kind: "half-open",
    target: "postgres",
    lastsMs: 45_000,
    play: ({ postgres }) => postgres.proxy.freeze(),
  },
  {
    kind: "hanging network",
    target: "postgres",
    play: ({ random, postgres }) => postgres.proxy.hang(random.between(...PAUSE_MS)),
  },
  {
    kind: "slow network",
    target: "postgres",
    play: ({ random, postgres }) => postgres.proxy.slow(random.int(20, 250), 5_000),
  },
  {
    kind: "full disk",
    target: "postgres",
    play: ({ random, postgres }) => postgres.fillDisk?.(random.between(...PAUSE_MS)),
  },
  {
    kind: "row locked",
    target: "lock",
    play: ({ random, postgres }) => postgres.lockRow(random.between(...PAUSE_MS)),
  },
  { kind: "connections reset", target: "postgres", play: ({ postgres }) => postgres.proxy.reset() },
  { kind: "FLUSHALL", target: "redis", isCalm: true, play: ({ redis }) => redis.flush() },
  {
    kind: "kill",
    target: "redis",
    isCalm: true,
    play: ({ random, redis }) => redis.kill(random.between(...PAUSE_MS)),
  },
  {
    kind: "CLIENT PAUSE",
    target: "redis",
    play: ({ random, redis }) => redis.pause(random.between(...PAUSE_MS)),
  },
  {
    kind: "half-open",
    target: "redis",
    lastsMs: 45_000,
    play: ({ redis }) => redis.proxy.freeze(),
  },
  {
    kind: "slow network",
    target: "redis",
    play: ({ random, redis }) => redis.proxy.slow(random.int(20, 250), 5_000),
  },
  {
    kind: "silent",
    target: "names",
    play: ({ random, names }) => names?.silence(random.between(...PAUSE_MS)),
  },
];

/** Injects faults at random moments, at most one at a time per process or store. */
export async function playFaults(deps: FaultDeps, forMs: number): Promise<void> {
  const { random, moods, only } = deps;
  const kinds = KINDS.filter(
    ({ kind, target, isCalm }) =>
      (moods === "full" || isCalm) &&
      (only === undefined || only === target) &&
      (kind !== "full disk" || deps.postgres.fillDisk !== undefined) &&
      (kind !== "silent" || deps.names !== undefined),
  );
  const stores = { isBusy: false };
  const drawn = Array.from({ length: random.int(LEAST, MOST) }, () => ({
    kind: random.pick(kinds),
    atMs: random.between(0.05, 0.95) * forMs,
    which: random.next(),
  }));
  const plan = [{ kind: FIRST, atMs: 0, which: 0 }, ...drawn].toSorted((a, b) => a.atMs - b.atMs);
  const startedMs = nowMs();
  await Promise.all(
    plan.map(async ({ kind, atMs, which }) => {
      await Bun.sleep(startedMs + atMs - nowMs());
      const from = kind.target === "api" ? deps.apis : deps.dispatchers;
      const idle = from.filter((one) => !one.isBusy);
      const one = idle[Math.floor(which * idle.length)];
      const isStore = kind.target !== "api" && kind.target !== "dispatcher";
      if (one === undefined || (isStore && stores.isBusy)) return;
      const busy = isStore ? stores : one;
      busy.isBusy = true;
      const began = nowMs();
      try {
        await kind.play(deps, one);
      } finally {
        busy.isBusy = false;
        const { lastsMs = 0, target } = kind;
        const name = isStore ? `${target}: ${kind.kind}` : `${one.name}: ${kind.kind}`;
        deps.faults.push({ kind: name, target, startedMs: began, endedMs: nowMs() + lastsMs });
      }
    }),
  );
}
