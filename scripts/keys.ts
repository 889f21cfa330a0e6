// `bun run keys` lists the signing keys, `bun run keys rotate` brings the next one into use, `bun run keys rotate-master`
// seals everything stored with the present master key. The settings of the server say which database and which master
// keys. Running API processes follow within seconds.
import { connect, type RawDb } from "../db/client.ts";
import { driverFault } from "../db/driver.ts";
import { serverTime } from "../db/server-time.ts";
import { rotateKeys } from "../src/auth/actions/rotate-keys.ts";
import { listKeyUse } from "../src/auth/queries/keys.ts";
import { isoInstant, systemClock } from "../src/lib/clock.ts";
import { ConfigError, EXIT_CONFIG, readConfig } from "../src/lib/config.ts";
import { createSecretBox, type SecretBox } from "../src/lib/secret-box.ts";
import { reportOf, rotateMaster } from "./keys/rotate-master.ts";

const COMMANDS = ["list", "rotate", "rotate-master"];
const USAGE = `Usage: bun run keys [${COMMANDS.join(" | ")}]`;
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;

async function main([command = "list", ...more]: readonly string[]): Promise<number> {
  if (more.length > 0 || !COMMANDS.includes(command)) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  const fault = driverFault();
  if (fault !== undefined) throw new ConfigError([fault]);
  const config = readConfig();
  const db = connect(config.databaseUrl, { max: 1, name: "reviewrelay-keys" });
  try {
    const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
    if (command === "rotate-master") return await resealAll(db, box);
    if (command === "rotate") await rotate(db, box);
    await list(db);
    return 0;
  } finally {
    await db.close();
  }
}

async function rotate(db: RawDb, box: SecretBox): Promise<void> {
  // By the same clock the API judges how long a retired key is kept.
  const now = await serverTime(db);
  const clock = { ...systemClock, now: () => now };
  const { retired, current, next } = await rotateKeys({ db, box, clock });
  console.log(`Rotated: ${current} signs now, ${retired} is retired, ${next} comes next.\n`);
}

async function resealAll(db: RawDb, box: SecretBox): Promise<number> {
  const { lines, done } = reportOf(await rotateMaster(db, box));
  for (const line of lines) console.log(line);
  return done ? 0 : 1;
}

async function list(db: RawDb): Promise<void> {
  const keys = await listKeyUse(db, await serverTime(db));
  if (keys.length === 0) {
    console.log("The ring is empty: the API makes its keys at its first start.");
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
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = error instanceof ConfigError ? EXIT_CONFIG : 1;
}
