import { randomBytes } from "node:crypto";
import { existsSync, fchmodSync, fstatSync, rmSync, writeFileSync } from "node:fs";

import { connect, type RawDb } from "../../../db/client.ts";
import { causeOf, rightsFault } from "../../../db/errors.ts";
import { commandLine } from "../../../db/executable.ts";
import { serverTime } from "../../../db/server.ts";
import { openKeyRing } from "../../auth/keys/key-ring.ts";
import { systemClock, isoInstant } from "../../lib/clock.ts";
import { readConfig, type Config } from "../../lib/config.ts";
import { exitIfFaulty, settingsOrExit } from "../../lib/lifecycle.ts";
import { createLog } from "../../lib/log.ts";
import { createSecretBox } from "../../lib/secrets.ts";
import { MASTER_KEY_REMEDY, masterKeyError } from "../../master-key.ts";
import { applyDesiredState, findMissing, type Result } from "./apply.ts";
import {
  completeDesiredState,
  readDesiredState,
  USAGE,
  UsageError,
  type DesiredState,
} from "./desired-state.ts";
import { migrateOrExit } from "./migrate.ts";

/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

/** Runs the command `setup` and returns its exit status. */
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

/**
 * Creates the file of `MASTER_KEY_FILE` with a new key and returns its path. Returns undefined if the file exists, or
 * if `MASTER_KEY` is set.
 */
function createMasterKeyFile(): string | undefined {
  const path = process.env["MASTER_KEY_FILE"]?.trim() ?? "";
  const isGiven = (process.env["MASTER_KEY"]?.trim() ?? "") !== "";
  if (path === "" || isGiven || existsSync(path)) return undefined;
  try {
    writeFileSync(path, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch {
    // The error is ignored here, because `readConfig` reports that the file cannot be read.
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
  // If the database contains values that another key has sealed, the new key cannot decrypt them, so its file is
  // removed.
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

/**
 * If the output is redirected to a file and contains the administrator's link or a secret, makes the file readable only
 * by its owner.
 */
function hideFromOthers({ admin, sites }: Result): void {
  const isSecret = admin?.link !== undefined || sites.some(({ secret }) => secret !== undefined);
  const { fd } = process.stdout;
  try {
    if (isSecret && fstatSync(fd).isFile()) fchmodSync(fd, 0o600);
  } catch {
    // The error is ignored: the mode of another user's file cannot be changed, so that user must protect the file.
  }
}

interface Report extends Result {
  readonly serverRoot: string;
  /** Number of migrations that this run has applied. */
  readonly migrations: number;
  /** The path of the file of a new master key; undefined if this run has created no key. */
  readonly masterKeyFile: string | undefined;
  /** Whether `--new-link` was given. */
  readonly newLink: boolean;
}

const NEW_WORD = "created";
const KNOWN_WORD = "already exists";
const stateWord = (isNew: boolean) => (isNew ? NEW_WORD : KNOWN_WORD);

function asText(report: Report): string {
  const { company, plans, sites, migrations, masterKeyFile } = report;
  return [
    `ReviewRelay at ${report.serverRoot}`,
    "",
    ...(masterKeyFile === undefined
      ? []
      : [
          `  master key written to ${masterKeyFile}: keep a copy separate from the database backups`,
        ]),
    `  schema         ${migrations === 0 ? "current" : `current, ${migrations} applied`}`,
    `  company        ${company.name}, ${stateWord(company.isNew)}`,
    ...adminLines(report),
    `  plans          ${plans.map((one) => `${one.name}, ${stateWord(one.isNew)}`).join("; ") || "none"}`,
    ...siteLines(sites),
    "",
    "Next:",
    ...nextSteps(report).map((step, i) => `  ${i + 1}. ${step}`),
  ].join("\n");
}

function adminLines({ admin, newLink, serverRoot }: Report): string[] {
  if (admin === undefined) return ["  administrator  none"];
  const lines = [`  administrator  ${admin.email}, ${stateWord(admin.isNew)}`];
  if (admin.link !== undefined)
    lines.push(
      " Open this link to set the password. It works once and expires after seven days:",
      `                 ${admin.link}`,
    );
  if (newLink && admin.hasPassword)
    lines.push(
      "                 No link was created because the password is already set. Reset it with a mailed code at",
      `                 ${serverRoot}/dashboard; or create another administrator with --admin-email another@…`,
    );
  return lines;
}

function siteLines(sites: Result["sites"]): string[] {
  if (sites.length === 0) return ["  review sites   none"];
  return sites.map(({ slug, name, isNew, secret }, i) => {
    const head = i === 0 ? "  review sites   " : "                 ";
    const shown = secret === undefined ? "" : `; its secret, shown only now: ${secret}`;
    return `${head}${slug} (${name}), ${stateWord(isNew)}${shown}`;
  });
}

function nextSteps({ admin, plans, sites }: Report): string[] {
  return [
    ...(plans.length === 0
      ? [`Create a plan, which accounts need: ${commandLine("setup")} --plan NAME`]
      : []),
    ...(sites.length === 0
      ? [`Create a review site: ${commandLine("setup")} --review-site SLUG=NAME`]
      : []),
    `Check the environment: ${commandLine("doctor")}`,
    `Start the processes: ${commandLine("api")}, and one or more ${commandLine("dispatcher")}`,
    ...passwordStep(admin),
    "Sign in, and create a partner, an account with its stores, and their connections: docs/operations/production.md",
  ];
}

function passwordStep(admin: Result["admin"]): string[] {
  if (admin === undefined || admin.hasPassword) return [];
  if (admin.link !== undefined) return ["Open the link and set the administrator's password"];
  return [
    `Open the link that an earlier run showed for ${admin.email}; to create another one: ${commandLine("setup")} --new-link`,
  ];
}

/** Formats the report as JSON, for programs. */
function asJsonText(report: Report): string {
  const { company, admin, plans, sites } = report;
  return JSON.stringify(
    {
      server_root: report.serverRoot,
      master_key_file: report.masterKeyFile,
      migrations_applied: report.migrations,
      company: { name: company.name, made: company.isNew },
      admin: admin && {
        email: admin.email,
        made: admin.isNew,
        has_password: admin.hasPassword,
        link: admin.link,
        link_expires_at: admin.linkExpiresAt && isoInstant(admin.linkExpiresAt),
      },
      plans: plans.map(({ name, isNew }) => ({ name, made: isNew })),
      review_sites: sites.map(({ slug, name, isNew, secret }) => ({
        slug,
        name,
        made: isNew,
        secret,
      })),
      next: nextSteps(report),
    },
    null,
    2,
  );
}
