import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { connect, type RawDb } from "../../../db/client.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { Prng } from "../../simulation/prng.ts";
import { Client } from "./client.ts";
import { type Moods, playFaults } from "./faults.ts";
import { type ChaosNames, startNames } from "./names.ts";
import { nowMs } from "./now.ts";
import { Operator } from "./operations.ts";
import { type ChaosPostgres, type PostgresOptions, startPostgres } from "./postgres.ts";
import { type Supervised, supervise } from "./processes.ts";
import { type ChaosRedis, startRedis } from "./redis.ts";
import { type Mood, type Receivers, startReceivers } from "./receivers.ts";
import { addTenants } from "./tenants.ts";
import type { Exit, Fault, Facts, Operation } from "../../verdicts/facts.ts";
import { countLeft, readTables } from "../../verdicts/read-tables.ts";
import { type WriterDeps, type Written, write, writeLast } from "./writers.ts";

export interface RoundOptions {
  readonly seed: number;
  readonly moods: Moods;
  /** Whether PgBouncer runs between the product and Postgres. */
  readonly pooler: "never" | "sometimes" | "always";
  readonly folder: string;
  /** How long writers, readers and faults run. */
  readonly troubleMs: number;
  /** The most events in one request of a writer. */
  readonly maxEvents: number;
  /** Only faults with this target are drawn; undefined for all. */
  readonly target: string | undefined;
  /** Rejects on a signal. */
  readonly ended: Promise<never>;
}

/** With more events in a request, there are no batches, because each event of a batch is a POST of its own. */
export const FEW_EVENTS = 4;
const PARTNERS = 8;
const HOSTS = 48;
const WRITERS = 6;
const READERS = 8;
const APIS = 2;
const RETRY_DELAYS_MS = [200, 400, 800];
const DELIVERY_TIMEOUT_MS = 2_000;
const BATCH_HOUR_MS = 3_000;
const DRAINS_WITHIN_MS = 45_000;
/** Clock errors in ms: an hour ahead and behind, a few seconds behind, and beyond the retention time. */
const CLOCKS_MS = [3_600_000, -3_600_000, -5_000, 40 * 86_400_000];
const FULL: readonly Mood[] = [
  "healthy",
  "healthy",
  "healthy",
  "failing",
  "gone",
  "slow",
  "hanging",
  "resetting-early",
  "resetting-late",
  "closing",
];
const CALM: readonly Mood[] = ["healthy", "healthy", "healthy", "healthy", "failing"];

interface Stage {
  readonly postgres: ChaosPostgres;
  readonly redis: ChaosRedis;
  readonly receivers: Receivers;
  readonly names: ChaosNames | undefined;
  readonly apis: readonly Supervised[];
  readonly dispatchers: readonly Supervised[];
  readonly client: Client;
  readonly faults: Fault[];
  readonly exits: Exit[];
}

export interface Played {
  readonly facts: Facts;
  readonly sent: number;
  readonly drainedMs: number;
  /** Counts of the clients' answers. */
  readonly answers: ReadonlyMap<string, number>;
}

/** Plays one round on empty stores and returns the facts. Everything that it started has ended when it resolves. */
export async function playRound(options: RoundOptions): Promise<Played> {
  const { folder, seed } = options;
  mkdirSync(folder);
  chmodSync(folder, 0o711);
  const random = new Prng(seed);
  const key = randomBytes(32);
  const stops: (() => Promise<void> | void)[] = [];
  try {
    const postgres = await startPostgres(folder, postgresOptionsOf(options, random));
    stops.push(() => postgres.stop());
    const redis = await startRedis(folder);
    stops.push(() => redis.stop());
    const hosts = Array.from({ length: HOSTS }, (_, n) => `127.2.0.${n + 1}`);
    const receivers = await startReceivers(hosts);
    stops.push(() => receivers.stop());
    const names = await startNames(hosts);
    stops.push(() => names?.stop());
    const stores = { postgres, redis, receivers, names };
    const stage = await startProduct({ ...options, key, random }, stores);
    stops.push(async () => {
      await Promise.all([...stage.dispatchers, ...stage.apis].map((one) => one.stop()));
    });
    const db = connect(postgres.url, { max: 2, name: "chaos" });
    stops.push(() => db.close());
    return await Promise.race([
      play({ ...options, key, random }, { stage, db, hosts }),
      options.ended,
    ]);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

function postgresOptionsOf({ moods, pooler }: RoundOptions, random: Prng): PostgresOptions {
  const [drawn, hasSmallDisk] = [random.chance(1 / 3), random.chance(1 / 4)];
  const isFull = moods === "full";
  return {
    hasPooler: pooler === "always" || (pooler === "sometimes" && isFull && drawn),
    hasSmallDisk: isFull && hasSmallDisk,
  };
}

type Drawn = RoundOptions & { readonly key: Uint8Array; readonly random: Prng };

async function startProduct(
  { folder, key, random, moods }: Drawn,
  stores: Pick<Stage, "postgres" | "redis" | "receivers" | "names">,
): Promise<Stage> {
  const faults: Fault[] = [];
  const exits: Exit[] = [];
  const ports = await Promise.all(Array.from({ length: APIS }, freePort));
  const env = {
    // The same root for both APIs, so that each accepts tokens that the other has signed.
    SERVER_ROOT: `http://127.0.0.1:${ports[0]}`,
    DATABASE_URL: stores.postgres.proxiedUrl,
    REDIS_URL: stores.redis.proxiedUrl,
    MASTER_KEY: Buffer.from(key).toString("base64"),
    RETRY_DELAYS_MS: RETRY_DELAYS_MS.join(","),
    DELIVERY_TIMEOUT_MS: String(DELIVERY_TIMEOUT_MS),
    BATCH_HOUR_MS: String(BATCH_HOUR_MS),
    RATE_LIMITS: "off",
    DRAIN_DELAY_MS: "0",
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
  const begin = (target: "api" | "dispatcher", name: string, command: Command) =>
    supervise({
      name,
      folder,
      prefix: stores.names?.prefix ?? [],
      args: [...(command.preload ?? []), ...command.args],
      env: { ...env, ...command.env },
      ended(exit) {
        exits.push(exit);
        const kind = `${name} ended by itself`;
        faults.push({ kind, target, startedMs: exit.atMs, endedMs: exit.atMs });
      },
    });
  const apis = ports.map((port, n) =>
    begin("api", `api-${n + 1}`, { args: ["src/main.ts", "api"], env: { PORT: String(port) } }),
  );
  const clocks = clocksOf(random, moods);
  const dispatchers = clocks.map((offsetMs, n) => {
    const name = `dispatcher-${n + 1}`;
    const args = ["dispatcher/main.ts", "dispatcher"];
    if (offsetMs === 0) return begin("dispatcher", name, { args, env: {} });
    const kind = `${name}: clock wrong by ${offsetMs / 1000} s`;
    faults.push({ kind, target: "clock", startedMs: 0, endedMs: Number.MAX_SAFE_INTEGER });
    const preload = ["--preload", join(import.meta.dir, "clock-offset.ts")];
    return begin("dispatcher", name, { preload, args, env: { CLOCK_OFFSET_MS: String(offsetMs) } });
  });
  const client = new Client(ports.map((port) => `http://127.0.0.1:${port}`));
  return { ...stores, apis, dispatchers, client, faults, exits };
}

interface Command {
  readonly preload?: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Returns the clock errors of two or three dispatchers; in a third of the full rounds the last one has a wrong clock.
 */
function clocksOf(random: Prng, moods: Moods): number[] {
  const count = random.int(2, 3);
  const isWrong = random.chance(1 / 3) && moods === "full";
  const wrong = random.pick(CLOCKS_MS);
  return Array.from({ length: count }, (_, n) => (isWrong && n === count - 1 ? wrong : 0));
}

async function play(
  { moods, troubleMs, maxEvents, target, key, random }: Drawn,
  { stage, db, hosts }: { stage: Stage; db: RawDb; hosts: readonly string[] },
): Promise<Played> {
  const { client, receivers, names, faults } = stage;
  const box = createSecretBox({ current: key });
  const tenants = await addTenants({ db, box, client }, PARTNERS);
  const operations: Operation[] = [];
  const free = [...hosts];
  const newUrl = () => {
    const host = free.shift();
    return host && `http://${names?.nameOf(host) ?? host}:${receivers.port}/hook`;
  };
  const operators = tenants.partners.flatMap((partner, n) => {
    const deps = {
      client,
      operations,
      newUrl,
      missedAt: receivers.missedAt,
      random: random.fork(),
    };
    const hasBatch = n % 2 === 0 && maxEvents <= FEW_EVENTS;
    const kinds = hasBatch ? (["immediate", "batch"] as const) : (["immediate"] as const);
    return kinds.map((kind) => new Operator(deps, partner, kind));
  });
  for (const operator of operators) await operator.create();
  const written: Written = { accepted: [], sent: 0 };
  const endMs = nowMs() + troubleMs;
  const isOver = () => nowMs() >= endMs;
  const writer = (name: string): WriterDeps => {
    return { client, tenants, written, name, maxEvents, random: random.fork() };
  };
  const writing = Array.from({ length: WRITERS }, (_, n) => write(writer(`w${n}`), isOver));
  await Promise.all([
    ...writing,
    ...Array.from({ length: READERS }, () => look(operators, random.fork(), isOver)),
    ...operators.map((operator) => operate(operator, random.fork(), isOver)),
    changeMoods({ receivers, hosts, random: random.fork(), moods }, isOver),
    playFaults({ ...stage, random: random.fork(), moods, only: target }, troubleMs),
    endWrongClocks(stage, troubleMs),
  ]);
  for (const host of hosts) receivers.setMood(host, "healthy");
  for (const operator of operators) while (!(await operator.revive())) await Bun.sleep(250);
  const drainedMs = await drain(db);
  await tellMissed({ db, operators, random }, writer("last"));
  // Stops the processes gracefully, so that running work is recorded.
  await Promise.all([...stage.dispatchers, ...stage.apis].map((one) => one.stop()));
  const facts: Facts = {
    retryDelaysMs: RETRY_DELAYS_MS,
    ...(await readTables({ db, box })),
    posts: receivers.posts,
    operations: operations.toSorted((a, b) => a.startedMs - b.startedMs),
    faults: faults.toSorted((a, b) => a.startedMs - b.startedMs),
    exits: stage.exits,
    accepted: written.accepted,
    wrongAnswers: client.wrong,
  };
  return { facts, sent: written.sent, drainedMs, answers: client.counts };
}

/** Records a last event for each partner, by which receivers learn what they missed. Half of them ask for it. */
async function tellMissed(
  { db, operators, random }: Pick<Drawn, "random"> & { db: RawDb; operators: readonly Operator[] },
  writer: WriterDeps,
): Promise<void> {
  await writeLast(writer);
  await drain(db);
  for (const operator of operators) if (random.chance(0.5)) await operator.askAgain();
  await drain(db);
}

/** Kills a dispatcher with a wrong clock before the end, so that another one takes over its records. */
async function endWrongClocks({ dispatchers, faults }: Stage, troubleMs: number): Promise<void> {
  const last = dispatchers.at(-1);
  if (last === undefined || !faults.some(({ target }) => target === "clock")) return;
  await Bun.sleep(troubleMs * 0.8);
  while (last.isBusy) await Bun.sleep(100);
  last.isBusy = true;
  const startedMs = nowMs();
  // It stays down for longer than the others need.
  await last.kill(troubleMs * 0.5);
  last.isBusy = false;
  const kind = `${last.name}: kill -9`;
  faults.push({ kind, target: "dispatcher", startedMs, endedMs: startedMs });
}

async function operate(operator: Operator, random: Prng, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await Bun.sleep(random.between(500, 4_000));
    if (!isOver()) await operator.act();
  }
}

async function look(
  operators: readonly Operator[],
  random: Prng,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    await random.pick(operators).look();
    await Bun.sleep(random.between(0, 30));
  }
}

async function changeMoods(
  {
    receivers,
    hosts,
    random,
    moods,
  }: {
    receivers: Receivers;
    hosts: readonly string[];
    random: Prng;
    moods: Moods;
  },
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const host = random.pick(hosts);
    receivers.setMood(host, random.pick(moods === "full" ? FULL : CALM));
    await Bun.sleep(random.between(20, 150));
  }
}

/** Waits until the queues stay empty for a second, or for the maximum time; returns how long it took. */
async function drain(db: RawDb): Promise<number> {
  const startedMs = nowMs();
  for (let empty = 0; empty < 4 && nowMs() - startedMs < DRAINS_WITHIN_MS;) {
    await Bun.sleep(250);
    empty = (await countLeft(db)) === 0 ? empty + 1 : 0;
  }
  return nowMs() - startedMs;
}
