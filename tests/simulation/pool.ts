import { join } from "node:path";

import type { SeedRange, Tally } from "./seeds.ts";

const SCRIPT = join(import.meta.dir, "../../scripts/simulate.ts");

/** Runs seeds in a child process, so that each has a core and an injected fault affects only that process. */
export async function runChild(range: SeedRange, report: (tally: Tally) => void): Promise<void> {
  const options = ["--from", range.from, "--seeds", range.seeds, "--step", range.step].map(String);
  if (range.injected !== undefined) options.push("--inject", range.injected);
  if (range.stopAtFailure) options.push("--first");
  const child = Bun.spawn([process.execPath, SCRIPT, "--child", ...options], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) report(JSON.parse(line));
  }
  const code = await child.exited;
  if (code !== 0) throw new Error(`A simulating process ended with code ${code}.`);
}

/** Distributes the seeds over `workers` processes. */
export async function runPool(
  range: Omit<SeedRange, "step">,
  workers: number,
  report: (tally: Tally) => void,
): Promise<void> {
  const share = (n: number) => Math.ceil((range.seeds - n) / workers);
  await Promise.all(
    Array.from({ length: Math.min(workers, range.seeds) }, (_, n) =>
      runChild({ ...range, from: range.from + n, step: workers, seeds: share(n) }, report),
    ),
  );
}
