// Manages keys; the server's settings name the database and the master keys.
//
// - `bun run keys` lists the signing keys.
// - `bun run keys rotate` activates the next signing key; running API processes follow within seconds. It refuses until that
//   key has been published for an hour, unless `--force` is given.
// - `bun run keys processes` lists the running processes with their master keys.
// - `bun run keys rotate-master` re-encrypts all stored secrets with the current master key.
import { connect, type RawDb } from "../../db/client.ts";
import { driverError } from "../../db/driver.ts";
import { causeOf } from "../../db/errors.ts";
import { schemaError } from "../../db/migrate.ts";
import { serverTime } from "../../db/server.ts";
import { rotateKeys } from "../auth/actions/rotate-keys.ts";
import { listKeyUse } from "../auth/queries/keys.ts";
import { isoInstant, systemClock } from "../lib/clock.ts";
import { ConfigError, EXIT_CONFIG, readConfig } from "../lib/config.ts";
import { createSecretBox, type SecretBox } from "../lib/secret-box.ts";
import { commandLine } from "../../db/executable.ts";
import { runningProcesses } from "../master-key.ts";
import { lackOf, reportOf, rotateMaster, showProcesses } from "./rotate-master.ts";

const COMMANDS = [
  "list",
  "rotate",
  "rotate --force",
  "processes",
  "rotate-master",
  "rotate-master --force",
];
const USAGE = `Usage: ${commandLine("keys")} [${COMMANDS.join(" | ")}]`;
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;

const REFUSED = [
  "Nothing was changed. Give each of them both keys, the new one as MASTER_KEY and the old one as MASTER_KEY_PREVIOUS, and",
  "restart it; then run this again (docs/operations/recovery.md). A process that was killed is forgotten after a minute.",
  "`rotate-master --force` ignores them: they can then decrypt no stored secret and report not ready.",
];
const LEFT_BEHIND = [
  "They can decrypt no stored secret and report not ready: restart each of them with this MASTER_KEY.",
];

async function main(args: readonly string[]): Promise<number> {
  const command = args.length === 0 ? "list" : args.join(" ");
  if (!COMMANDS.includes(command)) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  const fault = driverError();
  if (fault !== undefined) throw new ConfigError([fault]);
  const config = readConfig();
  const db = connect(config.databaseUrl, { max: 1, name: "reviewrelay-keys" });
  try {
    const lacking = await schemaError(db);
    if (lacking !== undefined) throw new ConfigError([lacking]);
    const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
    if (command === "processes") {
      for (const line of showProcesses(await runningProcesses(db))) console.log(line);
      return 0;
    }
    const isForced = command.endsWith("--force");
    if (command.startsWith("rotate-master")) return await resealAll(db, box, isForced);
    if (command.startsWith("rotate")) await rotate(db, box, isForced);
    await list(db);
    return 0;
  } finally {
    await db.close();
  }
}

async function rotate(db: RawDb, box: SecretBox, isForced: boolean): Promise<void> {
  // The database's clock, because the API uses it to decide how long a retired key is kept.
  const now = await serverTime(db);
  const clock = { ...systemClock, now: () => now };
  const { retired, current, next } = await rotateKeys({ db, box, clock }, { isForced });
  console.log(`Rotated: ${current} signs now, ${retired} is retired, ${next} comes next.\n`);
}

async function resealAll(db: RawDb, box: SecretBox, isForced: boolean): Promise<number> {
  const lack = lackOf(await runningProcesses(db), box);
  if (lack.length > 0 && !isForced) {
    for (const line of [...lack, "", ...REFUSED]) console.error(line);
    return 1;
  }
  const { lines, done } = reportOf(await rotateMaster(db, box));
  for (const line of lines) console.log(line);
  // Checks again, because a process that started meanwhile may lack the key.
  const late = lackOf(await runningProcesses(db), box);
  for (const line of late.length === 0 ? [] : ["", ...late, "", ...LEFT_BEHIND])
    console.error(line);
  return done && (late.length === 0 || isForced) ? 0 : 1;
}

async function list(db: RawDb): Promise<void> {
  const keys = await listKeyUse(db, await serverTime(db));
  if (keys.length === 0) {
    console.log("There are no keys yet: the API creates them at its first start.");
    return;
  }
  for (const { kid, state, tokens, ...at } of keys) {
    const since = at.retiredAt ?? at.activatedAt ?? at.createdAt;
    const use = `${tokens} live ${tokens === 1 ? "token" : "tokens"}`;
    console.log(`${kid}  ${state.padEnd(7)}  since ${isoInstant(since)}  ${use}`);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const cause = causeOf(error);
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = error instanceof ConfigError ? EXIT_CONFIG : 1;
}
