import { existsSync, fchmodSync, fstatSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";

import { connect, type RawDb } from "../../../db/client.ts";
import { causeOf, rightsFault } from "../../../db/errors.ts";
import { serverTime } from "../../../db/server.ts";
import { openKeyRing } from "../../auth/key-ring.ts";
import { systemClock } from "../../lib/clock.ts";
import { readConfig, type Config } from "../../lib/config.ts";
import { exitIfFaulty, settingsOrExit } from "../../lib/lifecycle.ts";
import { createLog } from "../../lib/log.ts";
import { createSecretBox } from "../../lib/secret-box.ts";
import { MASTER_KEY_REMEDY, masterKeyError } from "../../master-key.ts";
import { applyDesiredState, findMissing, type Result } from "./apply.ts";
import { migrateOrExit } from "./migrate.ts";
import { asJsonText, asText } from "./report.ts";
import {
  completeDesiredState,
  readDesiredState,
  USAGE,
  UsageError,
  type DesiredState,
} from "./desired-state.ts";

/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;

/** Runs the setup and returns the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const { desired, asJson, isHelpWanted } = readDesiredState(args, process.env);
    if (isHelpWanted) {
      console.log(USAGE);
      return 0;
    }
    const newKeyFile = createMasterKeyFile();
    const config = settingsOrExit(readConfig);
    const { applied } = await migrateOrExit(config);
    const db = connect(config.maintenanceDatabaseUrl, { max: 2, name: "reviewrelay-setup" });
    try {
      const result = await setUp(db, config, { desired, newKeyFile });
      const report = { ...result, migrations: applied };
      hideFromOthers(report);
      console.log(asJson ? asJsonText(report) : asText(report));
    } finally {
      await db.close();
    }
    return 0;
  } catch (error) {
    exitIfFaulty(rightsFault(error));
    if (!(error instanceof UsageError)) throw causeOf(error);
    console.error(error.message);
    return EXIT_USAGE;
  }
}

/** Creates the file of `MASTER_KEY_FILE` if it does not exist and returns its path; returns undefined otherwise. */
function createMasterKeyFile(): string | undefined {
  const path = process.env["MASTER_KEY_FILE"]?.trim() ?? "";
  const isGiven = (process.env["MASTER_KEY"]?.trim() ?? "") !== "";
  if (path === "" || isGiven || existsSync(path)) return undefined;
  try {
    writeFileSync(path, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // `readConfig` reports the error of the path later.
    return undefined;
  }
  return path;
}

async function setUp(
  db: RawDb,
  config: Config,
  { desired, newKeyFile }: { desired: DesiredState; newKeyFile: string | undefined },
) {
  const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
  const fault = await masterKeyError(db, box);
  // A new key opens nothing in a database that was sealed with another key, so its file is removed.
  if (fault !== undefined && newKeyFile !== undefined) rmSync(newKeyFile);
  exitIfFaulty(fault && `${fault} ${MASTER_KEY_REMEDY}`);
  const complete = await completeDesiredState(desired, await findMissing(db));
  const now = await serverTime(db);
  const log = createLog({ level: "warn", role: "setup", clock: systemClock }, console.error);
  await openKeyRing({ db, box, clock: { ...systemClock, now: () => now }, log, config });
  const result = await applyDesiredState(db, { box, config, now }, complete);
  const { serverRoot } = config;
  const { newLink } = desired;
  return { ...result, serverRoot, masterKeyFile: newKeyFile, newLink };
}

/** Makes a redirected output file readable only by its owner, if it contains the administrator's link or a secret. */
function hideFromOthers({ admin, sites }: Result): void {
  const isSecret = admin?.link !== undefined || sites.some(({ secret }) => secret !== undefined);
  const { fd } = process.stdout;
  try {
    if (isSecret && fstatSync(fd).isFile()) fchmodSync(fd, 0o600);
  } catch {
    // A file of another user cannot be changed; its owner must protect it.
  }
}
