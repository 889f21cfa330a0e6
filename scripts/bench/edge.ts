// `bun run bench edge` measures how much of the API's event loop the most expensive unauthenticated requests take,
// for all routes of the OpenAPI description, and how long other clients wait while one address repeatedly sends
// bursts of twenty of them.
import { availableParallelism } from "node:os";

import { mainThreadMs } from "../../tests/hostile/thread-time.ts";
import { worstRequests, type WorstRequest } from "../../tests/hostile/worst-requests.ts";
import { startAuthRig } from "./auth-rig.ts";
import { EDGE_PROBE } from "./edge-probe.ts";
import { quantile } from "./http-load.ts";
import { writeResult } from "./rig.ts";

const BODY_BYTES = 64 * 1024;
const TRIES = 7;
const SHOWN = 12;
const AT_ONCE = 20;
const SECONDS = 10;
/** The pause between two bursts: four times the sustained rate limit of an address. */
const PAUSE_MS = 250;

const round = (value: number, digits = 2) => Number(value.toFixed(digits));

interface Cost {
  readonly worst: WorstRequest;
  readonly ms: number;
  readonly status: number;
}

type Made = ReturnType<WorstRequest["make"]>;

async function send(root: string, { path, init }: Made): Promise<number> {
  const response = await fetch(root + path, init);
  await response.arrayBuffer();
  return response.status;
}

/** Returns the median of several tries, because garbage collection or compilation may disturb one of them. */
async function costOf(root: string, pid: number, worst: WorstRequest): Promise<Cost> {
  const costs: number[] = [];
  const made = worst.make(BODY_BYTES);
  let status = await send(root, made);
  for (let i = 0; i < TRIES; i++) {
    const before = mainThreadMs(pid);
    status = await send(root, made);
    costs.push(mainThreadMs(pid) - before);
  }
  return { worst, ms: quantile(costs, 0.5), status };
}

/** Measures `/healthz` while `attack` runs. */
async function probe(root: string, attack: (isOver: () => boolean) => Promise<unknown>) {
  const child = Bun.spawn([process.execPath, EDGE_PROBE, root, String(SECONDS)], {
    stdout: "pipe",
  });
  const attacking = attack(() => child.exitCode !== null);
  const times: number[] = JSON.parse(await new Response(child.stdout).text());
  await attacking;
  return {
    probes: times.length,
    "p50 ms": round(quantile(times, 0.5)),
    "p99 ms": round(quantile(times, 0.99)),
    "most ms": round(Math.max(...times)),
  };
}

async function inBursts(root: string, requests: readonly Made[], isOver: () => boolean) {
  while (!isOver()) {
    await Promise.all(requests.map((one) => send(root, one)));
    await Bun.sleep(PAUSE_MS);
  }
}

async function withoutPause(root: string, requests: readonly Made[], isOver: () => boolean) {
  await Promise.all(
    requests.map(async (one) => {
      while (!isOver()) await send(root, one);
    }),
  );
}

const rig = await startAuthRig(1);
try {
  const { apiRoot, apiPid } = rig;
  const description: unknown = await (await fetch(`${apiRoot}/openapi.json`)).json();
  const all = worstRequests(description);
  console.log(`${all.length} requests, ${TRIES} times each …`);
  const costs: Cost[] = [];
  for (const worst of all) costs.push(await costOf(apiRoot, apiPid, worst));
  const byCost = costs.toSorted((a, b) => b.ms - a.ms);
  const rows = byCost.slice(0, SHOWN).map(({ worst, ms, status }) => ({
    route: worst.route,
    shape: worst.shape,
    status,
    "event loop ms": round(ms),
  }));
  console.table(rows);
  const worst = byCost.slice(0, AT_ONCE).map((one) => one.worst.make(BODY_BYTES));
  const waits = {
    quiet: await probe(apiRoot, async () => {}),
    [`${AT_ONCE} of the worst at once, every ${PAUSE_MS} ms`]: await probe(apiRoot, (isOver) =>
      inBursts(apiRoot, worst, isOver),
    ),
    [`${AT_ONCE} of the worst, without a pause`]: await probe(apiRoot, (isOver) =>
      withoutPause(apiRoot, worst, isOver),
    ),
  };
  console.table(waits);
  const machine = { cores: availableParallelism(), bun: Bun.version };
  console.log(`Written to ${writeResult("edge", { machine, costs: rows, healthz: waits })}`);
} finally {
  await rig.stop();
}
process.exit(0);
