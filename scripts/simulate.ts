// `bun run simulate --seeds 10000` simulates the dispatcher with a virtual clock. Each seed is a reproducible run.
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";

import type { InjectedFault } from "../tests/simulation/replace.ts";
import { findInjectedFault, inject, INJECTED_FAULTS } from "../tests/simulation/injected-faults.ts";
import { runChild, runPool } from "../tests/simulation/pool.ts";
import type { Failure, SeedRange, Tally } from "../tests/simulation/seeds.ts";

const USAGE = `bun run simulate [options]
  --seeds N     how many seeds to run (1000)
  --from N      the first seed (1)
  --workers N   processes (one per core)
  --seed N      run one seed; with --trace print everything that happens
  --inject NAME with an injected fault
  --inject-all  run each injected fault until it is found`;

const FAULT_SEEDS = 5_000;
const FAILURES_SHOWN = 20;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    step: { type: "string", default: "1" },
    workers: { type: "string", default: String(availableParallelism()) },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    inject: { type: "string" },
    "inject-all": { type: "boolean", default: false },
    child: { type: "boolean", default: false },
    first: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values["inject-all"]) return searchAll();
  if (values.seed !== undefined) return showSeed(Number(values.seed), values.trace);
  return values.child ? simulateHere() : simulateAll();
}

function range(): SeedRange {
  return {
    from: Number(values.from),
    seeds: Number(values.seeds),
    step: Number(values.step),
    injected: values.inject,
    stopAtFailure: values.first,
  };
}

/**
 * Injects a fault if an option names one. The fault must be active before the dispatcher is imported, so this file
 * imports the dispatcher dynamically.
 */
async function prepare(): Promise<void> {
  if (values.inject !== undefined) await inject(findInjectedFault(values.inject));
}

async function simulateHere(): Promise<number> {
  await prepare();
  const { runSeeds, watchRejections } = await import("../tests/simulation/seeds.ts");
  watchRejections();
  const parent = process.ppid;
  await runSeeds(range(), (tally) => {
    // If the parent was killed, nothing reads the result.
    if (process.ppid !== parent) process.exit(1);
    process.stdout.write(`${JSON.stringify(tally)}\n`);
  });
  return 0;
}

async function showSeed(seed: number, traced: boolean): Promise<number> {
  await prepare();
  const { runSeed } = await import("../tests/simulation/run.ts");
  const { formatFailure, formatLine } = await import("../tests/simulation/run.ts");
  const result = runSeed(seed, { traced: true });
  if (traced) for (const line of result.trace) console.log(formatLine(line));
  console.log(formatFailure(result));
  return result.violation === undefined ? 0 : 1;
}

async function simulateAll(): Promise<number> {
  const startedMs = performance.now();
  const failures: Failure[] = [];
  const total = { seeds: 0, virtualMs: 0, faults: 0, posts: 0 };
  let shownMs = startedMs;
  await runPool(range(), Number(values.workers), (tally) => {
    add(total, tally);
    for (const failure of tally.failures) {
      failures.push(failure);
      if (failures.length <= FAILURES_SHOWN)
        console.log(`seed ${failure.seed}: ${failure.invariant}: ${failure.message}`);
    }
    if (performance.now() - shownMs < 2_000) return;
    shownMs = performance.now();
    console.log(describe(total, startedMs));
  });
  console.log(describe(total, startedMs));
  const [first] = failures.toSorted((a, b) => a.seed - b.seed);
  if (first === undefined) {
    console.log("No invariant was violated.");
    return 0;
  }
  console.log(`${failures.length} seeds failed. The first of them:\n`);
  await showSeed(first.seed, false);
  const injected = values.inject === undefined ? "" : ` --inject ${values.inject}`;
  console.log(`\nRepeat with a trace: bun run simulate --seed ${first.seed} --trace${injected}`);
  return 1;
}

type Total = Omit<Tally, "failures">;

function add(total: Total, tally: Total): void {
  total.seeds += tally.seeds;
  total.virtualMs += tally.virtualMs;
  total.faults += tally.faults;
  total.posts += tally.posts;
}

function describe({ seeds, virtualMs, faults, posts }: Total, startedMs: number): string {
  const seconds = (performance.now() - startedMs) / 1_000;
  const hours = (virtualMs / 3_600_000).toFixed(1);
  return `${seeds} seeds, ${(seeds / seconds).toFixed(0)} a second; ${hours} virtual hours, ${faults} faults, ${posts} POSTs`;
}

/** Checks that the simulation finds every injected fault by an invariant that the fault violates. */
async function searchAll(): Promise<number> {
  let missed = 0;
  for (const injected of INJECTED_FAULTS) {
    const { failure, seeds } = await search(injected);
    const found = failure !== undefined && injected.breaks.includes(failure.invariant);
    if (!found) missed += 1;
    const how =
      failure === undefined
        ? `NOT FOUND in ${seeds} seeds`
        : `${found ? "" : "NOT AS EXPECTED, "}seed ${failure.seed}: ${failure.invariant}`;
    console.log(`${injected.name.padEnd(22)} ${how.padEnd(40)} ${injected.bug}`);
  }
  console.log(
    missed === 0 ? "Every injected fault was found." : `${missed} injected faults were missed.`,
  );
  return missed === 0 ? 0 : 1;
}

/** Starts the search at a seed that is known to reveal the fault, so that it takes little time. */
async function search({
  name,
  seed,
}: InjectedFault): Promise<{ failure: Failure | undefined; seeds: number }> {
  let failure: Failure | undefined;
  let seeds = 0;
  const all = { from: seed, seeds: FAULT_SEEDS, step: 1, injected: name, stopAtFailure: true };
  await runChild(all, (tally) => {
    seeds += tally.seeds;
    failure ??= tally.failures[0];
  });
  return { failure, seeds };
}

process.exitCode = await main();
