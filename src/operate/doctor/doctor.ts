import { parseArgs } from "node:util";

import { connect } from "../../../db/client.ts";
import { writable } from "../../../db/server.ts";
import { systemClock } from "../../lib/clock.ts";
import { ConfigError, readConfig, type Config } from "../../lib/config.ts";
import { createLog } from "../../lib/log.ts";
import { commandLine } from "../../../db/executable.ts";
import * as database from "./database.ts";
import { advice, fault, checkWithin, ok, type Finding } from "./finding.ts";
import { unknownSettings } from "./names.ts";
import { riskySettings } from "./users.ts";
import * as surroundings from "./surroundings.ts";
import { checkAddresses, checkMailboxes } from "./users.ts";

const USAGE = `Usage: ${commandLine("doctor")} [--https URL]…

Checks the settings, PostgreSQL, Redis, the clock, the master key, descriptors, DNS, SMTP and https to receivers, and
reports remedies. Add --https for each further URL that deliveries must reach. The exit status is 1 if a check reports a
FAULT, so that a rollout can stop, and 0 if checks report only advice, such as a partner's receiver that is down.`;
/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;
const MAX_RECEIVERS = 3;
const MARKS = { ok: "ok    ", advice: "advice", fault: "FAULT " } as const;
const TITLE_CHARS = 12;

/** Runs all checks, prints the findings and returns the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  const urls = readUrls(args);
  if (urls === undefined) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  let hasFault = false;
  const report = (title: string, finding: Finding) => {
    hasFault ||= finding.kind === "fault";
    console.log(`${MARKS[finding.kind]}  ${title.padEnd(TITLE_CHARS)}  ${finding.said}`);
    if (finding.kind !== "ok") console.log(`${" ".repeat(TITLE_CHARS + 10)}${finding.remedy}`);
  };
  report("Bun", ok(Bun.version));
  const config = readSettings(report);
  for (const finding of unknownSettings(process.env)) report("settings", finding);
  if (config !== undefined) await examine(config, urls, report);
  return hasFault ? 1 : 0;
}

type Report = (title: string, finding: Finding) => void;

function readUrls(args: readonly string[]): URL[] | undefined {
  try {
    const options = {
      https: { type: "string", multiple: true },
      help: { type: "boolean" },
    } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    const urls = (values.https ?? []).map((url) => new URL(url));
    const isUsable = values.help !== true && urls.every(({ protocol }) => protocol === "https:");
    return isUsable ? urls : undefined;
  } catch {
    return undefined;
  }
}

function readSettings(report: Report): Config | undefined {
  try {
    const config = readConfig();
    report("settings", ok("complete"));
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const one of error.errors)
      report(
        "settings",
        fault(one.replace(/\.$/, ""), "docs/operations/settings.md lists them all."),
      );
    return undefined;
  }
}

async function examine(config: Config, urls: readonly URL[], report: Report): Promise<void> {
  for (const finding of riskySettings(config, process.env)) report("settings", finding);
  const receivers = await checkDatabase(config, report);
  const log = createLog({ level: "error", role: "doctor", clock: systemClock }, console.error);
  report(
    "Redis",
    await checkWithin(
      () => surroundings.checkRedis(config, log),
      "Check REDIS_URL, and that the server is running. Without Redis, deliveries continue with a delay of some seconds.",
      surroundings.hostsOf(config.redisUrl),
    ),
  );
  report("TLS", surroundings.checkTls(config));
  report("descriptors", surroundings.checkDescriptors());
  report(
    "name",
    await checkWithin(
      () => surroundings.checkName(config),
      "Check SERVER_ROOT: users and clients reach the service by this name.",
      surroundings.hostsOf(config.serverRoot),
    ),
  );
  report(
    "mail",
    await checkWithin(
      () => surroundings.checkMail(config),
      "Check SMTP_URL (smtp://user:password@host:587), and that the server is reachable from this machine.",
      surroundings.hostsOf(config.smtpUrl ?? ""),
    ),
  );
  if (urls.length + receivers.length === 0)
    report(
      "https",
      advice("not checked", "To check a host that deliveries must reach, add --https https://…"),
    );
  for (const url of urls) report("https", await checkHost(url, config));
  for (const url of receivers) report("https", adviceOfPartner(url, await checkHost(url, config)));
}

function checkHost(url: URL, config: Config): Promise<Finding> {
  return checkWithin(
    () => surroundings.checkHttps(url, config),
    `Allow dispatchers to connect to ${url.host}, or set WEBHOOK_PROXY_URL and WEBHOOK_CA_FILE.`,
    [url.hostname],
  );
}

/** Converts a fault of a partner's host to advice, because the partner may be the one who has to remedy it. */
function adviceOfPartner(url: URL, finding: Finding): Finding {
  if (finding.kind !== "fault") return finding;
  return advice(
    `${url.host}, a partner's receiver: ${finding.said}`,
    `Inform the partner. If other receivers fail, too: ${finding.remedy}`,
  );
}

/** Checks the database and returns https URLs of a few receivers, which `examine` then checks. */
async function checkDatabase(config: Config, report: Report): Promise<URL[]> {
  const options = { max: 1, name: "reviewrelay-doctor" };
  const db = connect(config.databaseUrl, options);
  const owner = connect(config.maintenanceDatabaseUrl, options);
  try {
    const reached = await checkWithin(
      () => database.checkServer(db, config),
      "Check DATABASE_URL, and that the server is running. Behind a pooler, add ?prepare=false.",
      surroundings.hostsOf(config.databaseUrl),
    );
    report("PostgreSQL", reached);
    if (reached.kind === "fault") return [];
    report(
      "writes",
      await checkWithin(async () => {
        await writable(db)();
        return ok("PostgreSQL accepts writes");
      }, "Check PostgreSQL's log and its free disk space. /readyz returns 503 for the same reason."),
    );
    report("durability", await checkWithin(() => database.checkDurability(db), "See the message."));
    const remedy = `See the message; \`${commandLine("migrate")}\` creates the tables.`;
    const schema = await checkWithin(() => database.checkSchema(db), remedy);
    report("schema", schema);
    report(
      "rights",
      await checkWithin(
        () => database.checkRights(owner, db),
        "Check MAINTENANCE_DATABASE_URL or, if it is not set, DATABASE_URL.",
        surroundings.hostsOf(config.maintenanceDatabaseUrl),
      ),
    );
    report("clock", await checkWithin(() => database.checkClock(db), remedy));
    if (schema.kind === "fault") return [];
    report("master key", await checkWithin(() => database.checkSecrets(db, config), remedy));
    report("contents", await checkWithin(() => database.checkContents(db), remedy));
    const limits = "Correct the reported error and run the check again; it reads all users.";
    report("mailboxes", await checkWithin(() => checkMailboxes(db), limits));
    report("addresses", await checkWithin(() => checkAddresses(db), limits));
    const receivers = await database.receiverHosts(db, MAX_RECEIVERS);
    return receivers.filter(({ protocol }) => protocol === "https:");
  } finally {
    await Promise.all([db.close(), owner.close()]);
  }
}
