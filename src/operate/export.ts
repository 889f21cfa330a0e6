// `bun run export`: writes the data of the platform, or of one company, to a file; see `bun run export --help`.
import { open } from "node:fs/promises";

import { systemClock } from "../lib/clock.ts";
import { commandLine } from "../../db/executable.ts";
import { exportRecords } from "../transfer/export.ts";
import { runWithDatabase, UsageError } from "./with-database.ts";

const HELP = `Writes the records of the database in DATABASE_URL to a file of JSON lines, which \`${commandLine("import")}\` can read.

  ${commandLine("export")} [options] <file.ndjson>

  --partner ID   only this partner with its accounts
  --account ID   only this account

The file must not exist. It contains password hashes and signing secrets; only its owner can read it.`;

const OPTIONS = { partner: { type: "string" }, account: { type: "string" } } as const;
const PROGRESS_MS = 2_000;
const OWNER_ONLY_MODE = 0o600;

await runWithDatabase(
  { name: "export", help: HELP, options: OPTIONS },
  async ({ db, box }, given) => {
    const { values, positionals } = given;
    const [path, ...more] = positionals;
    if (path === undefined || more.length > 0) throw new UsageError("Give exactly one file.");
    const partnerId = idOf("partner", values["partner"]);
    const accountId = idOf("account", values["account"]);
    if (partnerId !== undefined && accountId !== undefined)
      throw new UsageError("Give --partner or --account, not both.");
    const scope = {
      ...(partnerId !== undefined && { partnerId }),
      ...(accountId !== undefined && { accountId }),
    };
    const file = await open(path, "wx", OWNER_ONLY_MODE);
    let lines = 0;
    let shownMs = systemClock.monotonicMs();
    try {
      await exportRecords({ db, box, clock: systemClock }, scope, async (some) => {
        await file.write(some.map((one) => `${JSON.stringify(one)}\n`).join(""));
        lines += some.length;
        if (systemClock.monotonicMs() - shownMs < PROGRESS_MS) return;
        shownMs = systemClock.monotonicMs();
        console.log(`${path}: ${lines} lines`);
      });
      await file.sync();
    } finally {
      await file.close();
    }
    console.log(`${path}: ${lines} lines, all written.`);
    return 0;
  },
);

function idOf(name: string, text: unknown): number | undefined {
  if (text === undefined) return undefined;
  if (typeof text !== "string" || !/^[1-9]\d{0,9}$/.test(text))
    throw new UsageError(`--${name} must be an id.`);
  return Number(text);
}
