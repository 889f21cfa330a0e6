import { parseArgs } from "node:util";

import { connect, ping } from "../../db/client.ts";
import { writable } from "../../db/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { ConfigError, readConfig, type Config } from "../../src/lib/config.ts";
import { createLog } from "../../src/lib/log.ts";
import * as database from "./database.ts";
import { advice, fault, lookAt, ok, type Finding } from "./finding.ts";
import { strangeNames } from "./names.ts";
import * as surroundings from "./surroundings.ts";

const USAGE = `Usage: bun run doctor [--https URL]…

Looks at the settings, PostgreSQL, Redis, the clock, the master key, descriptors, DNS, SMTP and https to receivers, and
says what to do. --https names further places that deliveries have to reach. The exit status is 1 if there is a fault.`;
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;
const RECEIVERS = 3;
const MARKS = { ok: "ok    ", advice: "advice", fault: "FAULT " } as const;
const TITLE_CHARS = 12;

/** Answers the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  const places = placesOf(args);
  if (places === undefined) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  let hasFault = false;
  const tell = (title: string, finding: Finding) => {
    hasFault ||= finding.kind === "fault";
    console.log(`${MARKS[finding.kind]}  ${title.padEnd(TITLE_CHARS)}  ${finding.said}`);
    if (finding.kind !== "ok") console.log(`${" ".repeat(TITLE_CHARS + 10)}${finding.remedy}`);
  };
  tell("Bun", ok(Bun.version));
  const config = settings(tell);
  for (const finding of strangeNames(process.env)) tell("settings", finding);
  if (config !== undefined) await examine(config, places, tell);
  return hasFault ? 1 : 0;
}

type Tell = (title: string, finding: Finding) => void;

function placesOf(args: readonly string[]): URL[] | undefined {
  try {
    const options = {
      https: { type: "string", multiple: true },
      help: { type: "boolean" },
    } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return values.help === true ? undefined : (values.https ?? []).map((url) => new URL(url));
  } catch {
    return undefined;
  }
}

function settings(tell: Tell): Config | undefined {
  try {
    const config = readConfig();
    tell("settings", ok("complete"));
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const one of error.errors)
      tell(
        "settings",
        fault(one.replace(/\.$/, ""), "docs/operations/settings.md lists them all."),
      );
    return undefined;
  }
}

async function examine(config: Config, places: readonly URL[], tell: Tell): Promise<void> {
  const hosts = [...places, ...(await lookAtDatabase(config, tell))];
  const log = createLog({ level: "error", role: "doctor", clock: systemClock }, console.error);
  tell(
    "Redis",
    await lookAt(
      () => surroundings.lookAtRedis(config, log),
      "Look at REDIS_URL, and whether that server runs; deliveries go on without it, seconds later.",
    ),
  );
  tell("descriptors", surroundings.lookAtDescriptors());
  tell(
    "name",
    await lookAt(
      () => surroundings.lookAtName(config),
      "Look at SERVER_ROOT: people and clients find the service by that name.",
    ),
  );
  tell(
    "mail",
    await lookAt(
      () => surroundings.lookAtMail(config),
      "Look at SMTP_URL (smtp://user:password@host:587), and whether that server is reached from here.",
    ),
  );
  if (hosts.length === 0)
    tell(
      "https",
      advice("not tried", "Name a place that deliveries have to reach: --https https://…"),
    );
  for (const url of hosts.filter(({ protocol }) => protocol === "https:"))
    tell(
      "https",
      await lookAt(
        () => surroundings.lookAtHttps(url, config),
        `Let dispatchers connect to ${url.host}, or set WEBHOOK_PROXY_URL, WEBHOOK_CA_FILE.`,
      ),
    );
}

/** Answers where deliveries go to. */
async function lookAtDatabase(config: Config, tell: Tell): Promise<URL[]> {
  const options = { max: 1, name: "reviewrelay-doctor" };
  const db = connect(config.databaseUrl, options);
  const owner = connect(config.maintenanceDatabaseUrl, options);
  try {
    const reached = await lookAt(async () => {
      await ping(db);
      return database.lookAtServer(db, config);
    }, "Look at DATABASE_URL, and whether that server runs. Behind a pooler it needs ?prepare=false.");
    tell("PostgreSQL", reached);
    if (reached.kind === "fault") return [];
    tell(
      "writes",
      await lookAt(async () => {
        await writable(db)();
        return ok("PostgreSQL takes them");
      }, "Look at PostgreSQL's log, and at the space on its disk: /readyz is 503 for the same reason."),
    );
    const remedy = "Look at the message; bun run migrate makes the tables.";
    const schema = await lookAt(() => database.lookAtSchema(db), remedy);
    tell("schema", schema);
    tell(
      "rights",
      await lookAt(
        () => database.lookAtRights(owner, db),
        "Look at MAINTENANCE_DATABASE_URL, or else at DATABASE_URL.",
      ),
    );
    tell("clock", await lookAt(() => database.lookAtClock(db), remedy));
    if (schema.kind === "fault") return [];
    tell("master key", await lookAt(() => database.lookAtSecrets(db, config), remedy));
    tell("contents", await lookAt(() => database.lookAtContents(db), remedy));
    return await database.receiverHosts(db, RECEIVERS);
  } finally {
    await Promise.all([db.close(), owner.close()]);
  }
}
