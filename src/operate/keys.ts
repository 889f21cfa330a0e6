// Manages keys; see `bun run keys --help`.
import type { RawDb } from "../../db/client.ts";
import { serverTime } from "../../db/server.ts";
import { rotateKeys } from "../auth/actions/rotate-keys.ts";
import { listKeyUse } from "../auth/queries/keys.ts";
import { isoInstant, systemClock } from "../lib/clock.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { commandLine } from "../../db/executable.ts";
import { runningProcesses } from "../master-key.ts";
import { lackOf, reportOf, rotateMaster, showProcesses } from "./rotate-master.ts";
import { runWithDatabase, UsageError } from "./with-database.ts";

const USAGE = `Usage: ${commandLine("keys")} [list | rotate [--force] | processes | rotate-master [--force]]`;
const HELP = `Manages the keys of the database of the settings.

  list            (or no argument) lists the signing keys
  rotate          activates the next signing key, which running API processes use within seconds; it refuses until that key
                  has been published for an hour, unless --force is given
  processes       lists the running processes with their master keys
  rotate-master   re-encrypts all stored secrets with the current master key; it refuses while a process lacks that key,
                  unless --force is given`;

const REFUSED = [
  "Nothing was changed. Give each of them both keys, the new one as MASTER_KEY and the old one as MASTER_KEY_PREVIOUS, and",
  "restart it; then run this again (docs/operations/recovery.md). A process that was killed is forgotten after a minute.",
  "`rotate-master --force` ignores them: they can then decrypt no stored secret and report not ready.",
];
const LEFT_BEHIND = [
  "They can decrypt no stored secret and report not ready: restart each of them with this MASTER_KEY.",
];

await runWithDatabase(
  { name: "keys", help: HELP, options: { force: { type: "boolean" } } },
  async ({ db, box }, { values, positionals }) => {
    const isForced = values["force"] === true;
    const command = [...positionals, ...(isForced ? ["--force"] : [])].join(" ") || "list";
    switch (command) {
      case "list":
        break;
      case "rotate":
      case "rotate --force":
        await rotate(db, box, isForced);
        break;
      case "processes":
        for (const line of showProcesses(await runningProcesses(db))) console.log(line);
        return 0;
      case "rotate-master":
      case "rotate-master --force":
        return resealAll(db, box, isForced);
      default:
        throw new UsageError(USAGE);
    }
    await list(db);
    return 0;
  },
);

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
