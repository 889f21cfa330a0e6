import type { RunResult } from "./run.ts";
import type { TraceLine } from "./world.ts";

/** How many lines before the violation are shown. */
const LINES = 60;

export function formatLine({ atMs, who, what }: TraceLine): string {
  return `${(atMs / 1_000).toFixed(4).padStart(10)} s  ${who.padEnd(22)} ${what}`;
}

/** Tells what led to a violation: faults, leases, and everything about the subscription that it is of. */
export function formatFailure(result: RunResult): string {
  const { seed, violation, trace, settings } = result;
  if (violation === undefined) return `Seed ${seed}: nothing is wrong.`;
  const about = violation.subscriptionId;
  const told = trace.filter(
    ({ who, what }) =>
      about === undefined ||
      who === about ||
      what.includes(about) ||
      who === "FAULT" ||
      who === "VIOLATION" ||
      /starts|exits|goes on|lease|shards|dead|calm/.test(what),
  );
  return [
    `Seed ${seed} violates "${violation.invariant}" after ${(violation.atMs / 1_000).toFixed(3)} s: ${violation.message}`,
    `Settings: ${JSON.stringify(settings)}`,
    `The last ${Math.min(LINES, told.length)} lines${about === undefined ? "" : ` about ${about}`}:`,
    ...told.slice(-LINES).map(formatLine),
  ].join("\n");
}
