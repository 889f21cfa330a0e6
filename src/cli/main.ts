#!/usr/bin/env node
// Imported by nobody. It runs on Node 20 and Bun alike, so that partners may have it as one file (docs/decisions.md).
import { systemClock } from "../lib/clock.ts";
import { run } from "./run.ts";
import { withoutEmpty } from "./surroundings.ts";

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
process.once("SIGTERM", () => stop.abort());
// Whoever reads the output may leave, as `head` does.
process.stdout.on("error", () => process.exit(0));

const status = await run(process.argv.slice(2), {
  env: withoutEmpty(process.env),
  clock: systemClock,
  out: (text) => void process.stdout.write(`${text}\n`),
  say: (text) => void process.stderr.write(`${text}\n`),
  stdin: process.stdin,
  signal: stop.signal,
});
// The input may still be read; what was written goes out first.
process.stdout.write("", () => process.exit(status));
