// Runs chaos rounds: `bun run chaos [--rounds 5] [--seed N] [--moods calm|full] [--pooler never|sometimes|always]`. A
// round starts real stores behind proxies, two API processes, two or three dispatchers and receivers with different
// behaviour, all on loopback. It injects faults into all of them while clients write and owners change their
// subscriptions. Then the responses, the tables and the received requests are checked. The first round with a
// violation ends the run; its folder is kept with all logs and facts.
//
// `--events N`, the most events of one request, and `--target dispatcher`, the only target of faults, are for the
// sequence headers (contract 7.19): many events, and many kills. With more than 4 events, there are no batches, and only
// the rule of these headers judges, because other rules compare each event with all others.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { FEW_EVENTS, type Played, playRound } from "./round.ts";
import type { Facts, Finding } from "../../verdicts/facts.ts";
import { countFound, missedAreFound } from "../../verdicts/missed.ts";
import { findViolations } from "../../verdicts/violations.ts";
import { lacks } from "../../support/needs.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    moods: { type: "string", default: "full" },
    pooler: { type: "string", default: "never" },
    seconds: { type: "string", default: "30" },
    events: { type: "string", default: String(FEW_EVENTS) },
    target: { type: "string" },
    "keep-going": { type: "boolean", default: false },
  },
});
const moods = values.moods === "calm" ? "calm" : "full";
const pooler = (["sometimes", "always"] as const).find((one) => one === values.pooler) ?? "never";
if (pooler !== "never" && lacks("pgbouncer")) {
  console.log("There is no pgbouncer on this machine: install it, or leave --pooler out.");
  process.exit(1);
}
const SHOWN = 3;
const isMuch = Number(values.events) > FEW_EVENTS;

const folder = mkdtempSync(join(tmpdir(), "reviewrelay-chaos-"));
chmodSync(folder, 0o711);
// A signal ends the round in the usual way, so that everything it started is stopped.
const ended = new Promise<never>((_, reject) => {
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.once(name, () => reject(new Error(`Ended by ${name}.`)));
});
ended.catch(() => undefined);
let failed = 0;
console.log(`Seed ${values.seed}, ${values.rounds} rounds, ${moods}.`);
for (let round = 1; round <= Number(values.rounds); round++) {
  const seed = Number(values.seed) + round - 1;
  const home = join(folder, `round-${round}`);
  const startedMs = performance.now();
  const played = await playRound({
    seed,
    moods,
    folder: home,
    ended,
    pooler,
    troubleMs: Number(values.seconds) * 1_000,
    maxEvents: Number(values.events),
    target: values.target,
  }).catch((error: unknown) => {
    console.log(`Round ${round} (seed ${seed}) could not be completed; its logs are in ${home}.`);
    throw error;
  });
  const findings = isMuch ? missedAreFound(played.facts) : findViolations(played.facts);
  report(played, { round, seed, seconds: (performance.now() - startedMs) / 1_000 });
  if (findings.length === 0) {
    rmSync(home, { recursive: true, force: true });
    continue;
  }
  failed += 1;
  show(findings);
  writeFileSync(join(home, "facts.json"), JSON.stringify(played.facts, plain, 1));
  writeFileSync(join(home, "findings.json"), JSON.stringify(findings, plain, 1));
  console.log(`  Seed ${seed}; logs and facts are in ${home}.`);
  if (!values["keep-going"]) break;
}
if (failed === 0) rmSync(folder, { recursive: true, force: true });
console.log(
  failed === 0 ? `${values.rounds} rounds without a violation.` : `FAILED: ${failed} rounds.`,
);
process.exit(failed === 0 ? 0 : 1);

function report(
  { facts, sent, drainedMs, answers }: Played,
  { round, seed, seconds }: { round: number; seed: number; seconds: number },
): void {
  const told = [...answers].map(([answer, count]) => `${count} × ${answer}`).join(", ");
  console.log(
    `round ${round} (seed ${seed}): ${sent} events, ${facts.posts.length} POSTs, ${facts.attempts.length} records, ` +
      `drained in ${(drainedMs / 1_000).toFixed(1)} s, ${seconds.toFixed(0)} s in all`,
  );
  const { events, received, reported, filled, repeats, missed, untold } = countFound(facts);
  console.log(
    `  numbered: ${events} events, ${received} received, ${reported} reported as missed, ${filled} of them came later, ` +
      `${missed} missed at the end, ${untold} not told yet, ${repeats} repeats`,
  );
  console.log(`  answers: ${told}`);
  console.log(`  faults: ${facts.faults.map((fault) => faultText(fault, facts)).join("; ")}`);
}

function faultText({ kind, startedMs }: Facts["faults"][number], facts: Facts): string {
  const beganMs = Math.min(...facts.history.map(({ recordedMs }) => recordedMs));
  return startedMs === 0 ? kind : `${kind} at ${((startedMs - beganMs) / 1_000).toFixed(0)} s`;
}

function show(findings: readonly Finding[]): void {
  const rules = new Map<string, Finding[]>();
  for (const one of findings) rules.set(one.rule, [...(rules.get(one.rule) ?? []), one]);
  for (const [rule, all] of rules) {
    console.log(`  ${rule}: ${all.length}`);
    for (const { what, rows } of all.slice(0, SHOWN)) {
      console.log(`    ${what}`);
      for (const row of rows.slice(0, SHOWN)) console.log(`      ${JSON.stringify(row)}`);
    }
  }
}

function plain(_key: string, value: unknown): unknown {
  return value instanceof Map ? [...value] : value;
}
