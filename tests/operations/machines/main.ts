// Cuts each link and kills each machine of a set-up with failover, under load, and prints a table. It runs in new
// namespaces, for which tests/operations/machines/machines.test.ts has the command. `--only` selects faults by their name, and
// `--logs` names a folder to which the logs are copied.
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { decodeTime } from "ulid";

import { connect } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { until } from "../../support/network/receiver.ts";
import { expectNoViolations, type Load, startLoad } from "../../shipping/drill.ts";
import type * as verdicts from "../../verdicts/facts.ts";
import { type Fault, faultsOf } from "./faults.ts";
import { type Fleet, RETRY_DELAYS_MS, startFleet } from "./fleet.ts";
import { createNetwork } from "./network.ts";
import { postgresPrograms, startStores } from "./stores.ts";

/** Six clients that pause for this time send 40 to 50 events a second. */
const PACE_MS = 110;
/** The time after which a review site gives a request up. */
const CLIENT_TIMEOUT_MS = 10_000;
/** The time of undisturbed load before each fault. */
const CALM_MS = 3_000;
/** The promise: within this time after a heal, all APIs are ready and events that came later are delivered. */
const BACK_WITHIN_MS = 15_000;
/** The time after which the run gives up. */
const GIVE_UP_MS = 90_000;
const RUN_MS = 25 * 60_000;
const SAMPLE_MS = 50;
/** The faults during which every request is answered 200. */
const ANSWERED: ReadonlySet<string> = new Set([
  "isolate the Redis master",
  "kill the Redis master",
]);

const HEAD = `| fault | accepted | delivered | none accepted for | one partner gets none for | back after | redundant after |
|---|---|---|---|---|---|---|`;

const { values } = parseArgs({
  options: { only: { type: "string", default: "" }, logs: { type: "string" } },
});
// The parent holds the other end of the standard input, so this process ends with it, and everything ends with this one.
process.stdin.resume().once("end", () => process.exit(1));
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => process.exit(1));
setTimeout(() => process.exit(1), RUN_MS).unref();

const network = createNetwork();
let said = () => "";
try {
  process.exitCode = (await run()) ? 0 : 1;
} catch (error) {
  console.log(error);
  process.exitCode = 1;
}
if (process.exitCode !== 0) console.log(network.tails());
if (values.logs !== undefined) {
  cpSync(join(network.folder, "logs"), values.logs, { recursive: true });
  writeFileSync(join(values.logs, "product.log"), said());
}
process.exit();

async function run(): Promise<boolean> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error("There are no programs of PostgreSQL for Patroni.");
  const stores = await startStores(network, programs);
  const openDb = () =>
    connect(stores.databaseUrl, { max: 2, name: "judge", limits: LIMITS.requests });
  const fleet = await startFleet(network, stores, openDb);
  said = fleet.logs;
  const start = (machine: Parameters<Fleet["start"]>[0]) => {
    stores.start(machine);
    fleet.start(machine);
  };
  const load = startLoad(fleet.api, fleet.endpoints, {
    root: fleet.root,
    clients: fleet.endpoints.length,
    paceMs: PACE_MS,
    timeoutMs: CLIENT_TIMEOUT_MS,
  });
  await until("deliveries to all", () => isDeliveredSince(fleet, 0));
  const faults = faultsOf(network, stores, start).filter(({ name }) => name.match(values.only));
  console.log(HEAD);
  const rows: Row[] = [];
  for (const fault of faults) {
    const row = await endure(fault, { fleet, load, isRedundant: () => stores.isRedundant() });
    console.log(line(row));
    rows.push(row);
  }
  await load.stop();
  const db = openDb();
  await expectNoViolations({
    db,
    masterKey: fleet.masterKey,
    endpoints: fleet.endpoints,
    load,
    faults: rows.map(faultOf),
    retryDelaysMs: RETRY_DELAYS_MS,
  }).finally(() => db.close());
  console.log(
    `Answers: ${[...load.answers].map(([told, count]) => `${count} × ${told}`).join(", ")}`,
  );
  return rows.every(
    ({ name, answers, backMs }) =>
      backMs <= BACK_WITHIN_MS && (!ANSWERED.has(name) || Bun.deepEquals(answers, ["200"])),
  );
}

/** Any fault may take a dispatcher's lease, as an outage of PostgreSQL does. */
function faultOf({ name, beganAt, healedAt, backMs }: Row): verdicts.Fault {
  return { kind: name, target: "postgres", startedMs: beganAt, endedMs: healedAt + backMs };
}

interface Row {
  readonly name: string;
  readonly accepted: number;
  readonly delivered: number;
  readonly beganAt: number;
  readonly healedAt: number;
  /** The kinds of answers from before the fault until the service was back. */
  readonly answers: readonly string[];
  /** The longest time in which no event of any partner was accepted. */
  readonly acceptGapMs: number;
  /** The longest time in which a partner received nothing. */
  readonly deliveryGapMs: number;
  /** The time from the heal until the service is complete again. */
  readonly backMs: number;
  /** The time from the heal until each machine could be lost again. */
  readonly redundantMs: number;
}

interface Under {
  readonly fleet: Fleet;
  readonly load: Load;
  readonly isRedundant: () => Promise<boolean>;
}

/** Injects one fault and measures until everything is as before. */
async function endure(fault: Fault, { fleet, load, isRedundant }: Under): Promise<Row> {
  const receivers = fleet.endpoints.map(({ receiver }) => receiver);
  const arrivals = () => sum(receivers.map(({ eventIds }) => new Set(eventIds).size));
  const before = {
    accepted: load.accepted.length,
    arrivals: arrivals(),
    answers: new Map(load.answers),
  };
  const gaps = [
    watchGap(() => load.accepted.length),
    ...receivers.map(({ received }) => watchGap(() => received.length)),
  ];
  await Bun.sleep(CALM_MS);
  const beganAt = Date.now();
  const heal = await fault.begin();
  await Bun.sleep(fault.lastsMs);
  const healedAt = Date.now();
  const acceptedAtHeal = load.accepted.length;
  heal();
  const sinceHeal = async (what: string, holds: () => boolean | Promise<boolean>) => {
    await until(`${fault.name}: ${what}`, holds, GIVE_UP_MS);
    return Date.now() - healedAt;
  };
  const isBack = async () =>
    load.accepted.length > acceptedAtHeal &&
    isDeliveredSince(fleet, healedAt) &&
    (await fleet.isReady());
  const backMs = await sinceHeal("the service is back", isBack);
  const redundantMs = await sinceHeal("redundant stores", isRedundant);
  const [acceptGapMs = 0, ...deliveryGapsMs] = gaps.map((stop) => stop());
  return {
    name: fault.name,
    accepted: load.accepted.length - before.accepted,
    delivered: arrivals() - before.arrivals,
    beganAt,
    healedAt,
    answers: [...load.answers]
      .filter(([told, count]) => count > (before.answers.get(told) ?? 0))
      .map(([told]) => told),
    acceptGapMs,
    deliveryGapMs: Math.max(...deliveryGapsMs),
    backMs,
    redundantMs,
  };
}

/** Whether each endpoint has received an event that was recorded after an instant; it has all earlier ones, in order. */
function isDeliveredSince(fleet: Fleet, sinceMs: number): boolean {
  return fleet.endpoints.every(({ receiver }) => {
    const last = receiver.received.at(-1)?.headers["x-svc-delivery"];
    return last !== undefined && decodeTime(last) >= sinceMs;
  });
}

/** Measures the longest time in which a count stays the same. */
function watchGap(counted: () => number): () => number {
  let longestMs = 0;
  let count = counted();
  let sinceMs = performance.now();
  const look = () => {
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    if (counted() === count) return;
    count = counted();
    sinceMs = performance.now();
  };
  const timer = setInterval(look, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    look();
    return longestMs;
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function line(row: Row): string {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const times = [row.acceptGapMs, row.deliveryGapMs, row.backMs, row.redundantMs].map(seconds);
  return `| ${[row.name, row.accepted, row.delivered, ...times].join(" | ")} |`;
}
