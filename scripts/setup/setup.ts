import { existsSync, fchmodSync, fstatSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";

import { connect, ping, type RawDb } from "../../db/client.ts";
import { isPoolerFound } from "../../db/errors.ts";
import { migrate, FOREIGN_SCHEMA, schemaState } from "../../db/migrate.ts";
import { serverTime } from "../../db/server.ts";
import { openKeyRing } from "../../src/auth/key-ring.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { readConfig, type Config } from "../../src/lib/config.ts";
import { exitIfFaulty, reachableOrExit, settingsOrExit } from "../../src/lib/lifecycle.ts";
import { createLog } from "../../src/lib/log.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { MASTER_KEY_REMEDY, masterKeyError } from "../../src/master-key.ts";
import { applyWishes, lacksOf, type Result } from "./apply.ts";
import { asJsonText, asText } from "./report.ts";
import { completeWishes, readWishes, USAGE, UsageError, type Wishes } from "./wishes.ts";

/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;

/** Answers the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const { wishes, asJson, isHelpWanted } = readWishes(args, process.env);
    if (isHelpWanted) {
      console.log(USAGE);
      return 0;
    }
    const madeKey = makeMasterKeyFile();
    const config = settingsOrExit(readConfig);
    const db = connect(config.databaseUrl, { max: 2, name: "reviewrelay-setup" });
    try {
      const report = await setUp(db, config, { wishes, madeKey });
      hideFromOthers(report);
      console.log(asJson ? asJsonText(report) : asText(report));
    } finally {
      await db.close();
    }
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    return EXIT_USAGE;
  }
}

/** The file that `MASTER_KEY_FILE` names, made where there is none; undefined where nothing was made. */
function makeMasterKeyFile(): string | undefined {
  const path = process.env["MASTER_KEY_FILE"]?.trim() ?? "";
  const isGiven = (process.env["MASTER_KEY"]?.trim() ?? "") !== "";
  if (path === "" || isGiven || existsSync(path)) return undefined;
  try {
    writeFileSync(path, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // The settings say what is wrong with the path.
    return undefined;
  }
  return path;
}

async function setUp(
  db: RawDb,
  config: Config,
  { wishes, madeKey }: { wishes: Wishes; madeKey: string | undefined },
) {
  await reachableOrExit("DATABASE_URL", () => ping(db), {
    clock: systemClock,
    isFatal: isPoolerFound,
  });
  const before = await schemaState(db);
  exitIfFaulty(before.kind === "foreign" ? FOREIGN_SCHEMA : undefined);
  await migrate(config.databaseUrl);
  const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
  const fault = await masterKeyError(db, box);
  // A key that was just made opens nothing of a database that another one sealed.
  if (fault !== undefined && madeKey !== undefined) rmSync(madeKey);
  exitIfFaulty(fault && `${fault} ${MASTER_KEY_REMEDY}`);
  const complete = await completeWishes(wishes, await lacksOf(db));
  const now = await serverTime(db);
  const log = createLog({ level: "warn", role: "setup", clock: systemClock }, console.error);
  await openKeyRing({ db, box, clock: { ...systemClock, now: () => now }, log, config });
  const result = await applyWishes(db, { box, config, now }, complete);
  const migrations = before.kind === "behind" ? before.by : 0;
  const { serverRoot } = config;
  const { newLink } = wishes;
  return { ...result, serverRoot, migrations, masterKeyFile: madeKey, newLink };
}

/** A file that the output goes into becomes its user's alone where the administrator's link or a secret goes into it. */
function hideFromOthers({ admin, sites }: Result): void {
  const isSecret = admin?.link !== undefined || sites.some(({ secret }) => secret !== undefined);
  const { fd } = process.stdout;
  try {
    if (isSecret && fstatSync(fd).isFile()) fchmodSync(fd, 0o600);
  } catch {
    // Another user's file is that user's to guard.
  }
}
