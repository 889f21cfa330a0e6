// Prints the tables at the end of a run.
import { round } from "../figures.ts";
import type { Bare } from "./bare.ts";
import type { partD } from "./hanging.ts";
import type { Idle, partF, Watched } from "./reads.ts";
import type { soak } from "./soak.ts";
import type { Loaded } from "./throughput.ts";
import type { TopStatement } from "./usage.ts";

const SHOWN = 5;
const WATCHED = ["subscriptions", "watchers", "refused", "queriesPerSecond", "postgresMs", "apiMs"];

export interface LiveResult {
  readonly tree: string;
  readonly commit: string;
  readonly stores: string;
  readonly rows: number;
  bare?: Bare;
  a?: Loaded;
  h?: Loaded;
  b?: Loaded[];
  c?: Loaded;
  d?: Awaited<ReturnType<typeof partD>>;
  e?: Watched[];
  f?: Awaited<ReturnType<typeof partF>>;
  i?: Idle;
  soak?: Awaited<ReturnType<typeof soak>>;
}

export function report(result: LiveResult): void {
  const { bare, a, h, b = [], c, d, e = [], f = [], i, soak } = result;
  console.log(`\n${result.commit}, ${result.stores}, ${result.rows} rows of history and attempts`);
  if (bare !== undefined) console.table([bare]);
  const loads = [a, h, c, ...b].flatMap((one) => one ?? []);
  if (loads.length > 0) {
    console.table(loads.map((one) => rates(one, bare)));
    console.log(
      "CPU of an event in µs by process; the product is API, dispatcher, Postgres and Redis:",
    );
    console.table(loads.map(costs));
  }
  for (const one of [a, c])
    if (one !== undefined)
      tops(`Where ${one.name} spends most time in Postgres, by event`, one.top);
  if (d !== undefined) console.table([d]);
  if (e.length > 0) {
    console.table(e, WATCHED);
    tops("What watchers ask, by watched subscription and second", e[0]?.top.slice(0, SHOWN) ?? []);
  }
  if (f.length > 0) console.table(f);
  if (i !== undefined) {
    const { top, ...rest } = i;
    console.log("A second without work: CPU in µs, and counts");
    console.table([costs({ name: "idle", ...rest })]);
    tops("What is asked in a second without work", top);
  }
  if (soak !== undefined) {
    console.table(soak.minutes);
    console.table(soak.slopes);
  }
}

function rates(one: Loaded, bare: Bare | undefined) {
  return {
    load: one.name,
    "accepted/s": one.acceptedPerSecond,
    "delivered/s": one.deliveredPerSecond,
    inversions: one.inversions,
    missing: one.missing,
    refused: one.refused,
    "accept p50": one.accept.p50Ms,
    "accept p99": one.accept.p99Ms,
    "publish p50": one.publishToReceipt.p50Ms,
    "publish p99": one.publishToReceipt.p99Ms,
    "commit p50": one.answerToReceipt.p50Ms,
    "commit p99": one.answerToReceipt.p99Ms,
    ...(bare !== undefined && {
      "/insert": round(one.acceptedPerSecond / bare.insertsPerSecond, 2),
      "/fetch": round(one.deliveredPerSecond / bare.fetchPerSecond, 2),
      "/client": round(one.deliveredPerSecond / bare.clientPerSecond, 2),
    }),
  };
}

function costs({ name, perEvent }: Pick<Loaded, "name" | "perEvent">) {
  const { cpuUs, productUs, ...rest } = perEvent;
  return { load: name, product: productUs, ...cpuUs, ...rest };
}

function tops(title: string, top: readonly TopStatement[]): void {
  if (top.length === 0) return;
  console.log(`${title}, in µs of execution and of planning:`);
  for (const { perEvent, usPerEvent, planUsPerEvent, blocksPerEvent, text } of top) {
    const times = [usPerEvent.toFixed(1).padStart(8), planUsPerEvent.toFixed(1).padStart(8)];
    const counts = `${perEvent.toFixed(2).padStart(7)} times  ${blocksPerEvent.toFixed(1).padStart(6)} blocks`;
    console.log(`  ${times.join(" + ")}  ${counts}  ${text}`);
  }
}
