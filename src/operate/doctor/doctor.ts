import { parseArgs } from "node:util";

import { connect } from "../../../db/client.ts";
import { writable } from "../../../db/server.ts";
import { systemClock } from "../../lib/clock.ts";
import { ConfigError, readConfig, type Config } from "../../lib/config.ts";
import { createLog } from "../../lib/log.ts";
import { commandLine } from "../../../db/executable.ts";
import * as database from "./database.ts";
import { advice, fault, lookAt, ok, type Finding } from "./finding.ts";
import { unknownSettings } from "./names.ts";
import { riskySettings } from "./risks.ts";
import * as surroundings from "./surroundings.ts";
import { lookAtAddresses, lookAtMailboxes } from "./users.ts";

const USAGE = `Usage: ${commandLine("doctor")} [--https URL]…

Looks at the settings, PostgreSQL, Redis, the clock, the master key, descriptors, DNS, SMTP and https to receivers, and
says what to do. --https names further places that deliveries have to reach. The exit status is 1 if the installation has a
FAULT, so that it can stop a rollout. Advice, such as a partner's receiver that is down, leaves it at 0.`;
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;
const RECEIVERS = 3;
const MARKS = { ok: "ok    ", advice: "advice", fault: "FAULT " } as const;
const TITLE_CHARS = 12;

/** Runs all checks and returns the exit status. */
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
  const config = settings(report);
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

function settings(report: Report): Config | undefined {
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
  const receivers = await lookAtDatabase(config, report);
  const log = createLog({ level: "error", role: "doctor", clock: systemClock }, console.error);
  report(
    "Redis",
    await lookAt(
      () => surroundings.lookAtRedis(config, log),
      "Look at REDIS_URL, and check that the server runs; without it deliveries continue, but seconds later.",
      surroundings.hostsOf(config.redisUrl),
    ),
  );
  report("TLS", surroundings.lookAtTls(config));
  report("descriptors", surroundings.lookAtDescriptors());
  report(
    "name",
    await lookAt(
      () => surroundings.lookAtName(config),
      "Look at SERVER_ROOT: people and clients use that name to find the service.",
      surroundings.hostsOf(config.serverRoot),
    ),
  );
  report(
    "mail",
    await lookAt(
      () => surroundings.lookAtMail(config),
      "Look at SMTP_URL (smtp://user:password@host:587), and check that the server can be reached from here.",
      surroundings.hostsOf(config.smtpUrl ?? ""),
    ),
  );
  if (urls.length + receivers.length === 0)
    report(
      "https",
      advice("not tried", "Name a host that deliveries must reach: --https https://…"),
    );
  for (const url of urls) report("https", await lookAtHost(url, config));
  for (const url of receivers) report("https", ofPartner(url, await lookAtHost(url, config)));
}

function lookAtHost(url: URL, config: Config): Promise<Finding> {
  return lookAt(
    () => surroundings.lookAtHttps(url, config),
    `Let dispatchers connect to ${url.host}, or set WEBHOOK_PROXY_URL, WEBHOOK_CA_FILE.`,
    [url.hostname],
  );
}

/** Turns the fault of a partner's host into advice, because the partner can cause it, too. */
function ofPartner(url: URL, finding: Finding): Finding {
  if (finding.kind !== "fault") return finding;
  return advice(
    `${url.host}, a partner's receiver: ${finding.said}`,
    `Tell the partner. If others fail, too: ${finding.remedy}`,
  );
}

/** Checks the database and returns a few URLs of receivers with TLS. */
async function lookAtDatabase(config: Config, report: Report): Promise<URL[]> {
  const options = { max: 1, name: "reviewrelay-doctor" };
  const db = connect(config.databaseUrl, options);
  const owner = connect(config.maintenanceDatabaseUrl, options);
  try {
    const reached = await lookAt(
      () => database.lookAtServer(db, config),
      "Look at DATABASE_URL, and check that the server runs. Behind a pooler it needs ?prepare=false.",
      surroundings.hostsOf(config.databaseUrl),
    );
    report("PostgreSQL", reached);
    if (reached.kind === "fault") return [];
    report(
      "writes",
      await lookAt(async () => {
        await writable(db)();
        return ok("PostgreSQL accepts writes");
      }, "Look at PostgreSQL's log, and at the space on its disk: /readyz is 503 for the same reason."),
    );
    report("durability", await lookAt(() => database.lookAtDurability(db), "See the message."));
    const remedy = `See the message; \`${commandLine("migrate")}\` creates the tables.`;
    const schema = await lookAt(() => database.lookAtSchema(db), remedy);
    report("schema", schema);
    report(
      "rights",
      await lookAt(
        () => database.lookAtRights(owner, db),
        "Look at MAINTENANCE_DATABASE_URL, or else at DATABASE_URL.",
        surroundings.hostsOf(config.maintenanceDatabaseUrl),
      ),
    );
    report("clock", await lookAt(() => database.lookAtClock(db), remedy));
    if (schema.kind === "fault") return [];
    report("master key", await lookAt(() => database.lookAtSecrets(db, config), remedy));
    report("contents", await lookAt(() => database.lookAtContents(db), remedy));
    const limits = "See the message; the check reads all users.";
    report("mailboxes", await lookAt(() => lookAtMailboxes(db), limits));
    report("addresses", await lookAt(() => lookAtAddresses(db), limits));
    const receivers = await database.receiverHosts(db, RECEIVERS);
    return receivers.filter(({ protocol }) => protocol === "https:");
  } finally {
    await Promise.all([db.close(), owner.close()]);
  }
}
