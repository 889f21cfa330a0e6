// `bun run import`: imports records from files of JSON lines; see `bun run import --help`.
import { existsSync } from "node:fs";
import { resolve } from "node:path";

import { systemClock } from "../lib/clock.ts";
import { commandLine } from "../../db/executable.ts";
import { importFile, type ImportResult, type Pace } from "../transfer/import.ts";
import { runWithDatabase, UsageError } from "./with-database.ts";

const HELP = `Imports files of JSON lines into the database in DATABASE_URL (docs/operations/import.md).

  ${commandLine("import")} [options] <file.ndjson …>

  --dry-run       check every line and change nothing
  --resume        continue after the last imported line of an interrupted run
  --announce      record history lines as actions that happen now, which send webhooks, batches and mails
  --skip-faulty   report faulty lines and continue; without it, the import stops at the first faulty lines`;

const OPTIONS = {
  "dry-run": { type: "boolean", default: false },
  resume: { type: "boolean", default: false },
  announce: { type: "boolean", default: false },
  "skip-faulty": { type: "boolean", default: false },
} as const;

/** The maximum number of faults that are printed. */
const FAULTS_SHOWN = 1_000;
const PROGRESS_MS = 2_000;

await runWithDatabase(
  { name: "import", help: HELP, options: OPTIONS },
  async ({ db, box, config }, given) => {
    const { values, positionals } = given;
    if (positionals.length === 0) throw new UsageError("Give at least one file.");
    const missing = positionals.find((path) => !existsSync(path));
    if (missing !== undefined) throw new UsageError(`The file ${missing} does not exist.`);
    const deps = { db, box, config, clock: systemClock };
    for (const path of positionals) {
      let faults = 0;
      const showProgress = progressPrinter(path);
      const result = await importFile(
        deps,
        {
          file: resolve(path),
          isDryRun: values["dry-run"] === true,
          resumes: values["resume"] === true,
          announces: values["announce"] === true,
          skipsFaulty: values["skip-faulty"] === true || values["dry-run"] === true,
        },
        {
          onFault: ({ line, record, field, text }) => {
            const said = [`${path}:${line}`, record, `${field} ${text}`].filter(
              (one) => one !== undefined,
            );
            if (faults++ < FAULTS_SHOWN) console.error(said.join(": "));
          },
          onProgress: showProgress,
        },
      );
      if (faults > FAULTS_SHOWN) console.error(`… and ${faults - FAULTS_SHOWN} more errors.`);
      for (const line of summaryOf(path, result, values["dry-run"] === true)) console.log(line);
      if (!result.isWhole) {
        if (values["dry-run"] !== true)
          console.error(
            "Stopped. The lines before the faulty chunk are imported. Correct the file and continue with --resume, or use --skip-faulty.",
          );
        return 1;
      }
      if (faults > 0) return 1;
    }
    return 0;
  },
);

function progressPrinter(path: string): (pace: Pace) => void {
  let shownMs = 0;
  return ({ lines, total, linesOfRun, elapsedMs }) => {
    if (elapsedMs - shownMs < PROGRESS_MS && lines < total) return;
    shownMs = elapsedMs;
    const rate = linesOfRun / Math.max(1, elapsedMs / 1_000);
    const leftS = Math.round((total - lines) / Math.max(1, rate));
    const share = total === 0 ? 100 : Math.floor((100 * lines) / total);
    const left = `${Math.floor(leftS / 60)} min ${leftS % 60} s left`;
    console.log(`${path}: ${lines} of ${total} lines (${share} %), ${Math.round(rate)}/s, ${left}`);
  };
}

function rowOf(kind: string, ...cells: (number | string)[]): string {
  return `  ${kind.padEnd(14)}${cells.map((cell) => String(cell).padStart(12)).join("")}`;
}

function* summaryOf(path: string, { counts }: ImportResult, isDry: boolean): Iterable<string> {
  yield isDry ? `${path}, checked only:` : `${path}:`;
  yield rowOf("", isDry ? "new" : "created", "present", "faulty");
  for (const [kind, { created, present, faulty }] of Object.entries(counts))
    yield rowOf(kind, created, present, faulty);
}
