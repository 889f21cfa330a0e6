#!/usr/bin/env node
// Entry point of the `reviewrelay` command. It runs on Node 20 and on Bun, so that partners can download it as one
// file (docs/decisions.md).
import { systemClock } from "../lib/clock.ts";
import { printable, withoutEmpty } from "./context.ts";
import { run } from "./run.ts";

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
process.once("SIGTERM", () => stop.abort());
// The reader of a pipe may close it early, as `head` does. The command then ends without an error.
process.stdout.on("error", () => process.exit(0));

const status = await run(process.argv.slice(2), {
  env: withoutEmpty(process.env),
  clock: systemClock,
  out: (text) => void process.stdout.write(`${printable(text)}\n`),
  say: (text) => void process.stderr.write(`${printable(text)}\n`),
  stdin: process.stdin,
  signal: stop.signal,
});
// An open `stdin` may keep the process alive, so it exits explicitly after the output is flushed.
process.stdout.write("", () => process.exit(status));
