// Formats the result of a setup.
import { isoInstant } from "../../lib/clock.ts";
import { commandLine } from "../../../db/executable.ts";
import type { Result } from "./apply.ts";

interface Report extends Result {
  readonly serverRoot: string;
  /** How many migrations were applied. */
  readonly migrations: number;
  /** The file of a new master key; undefined if there was one. */
  readonly masterKeyFile: string | undefined;
  /** Whether `--new-link` was given. */
  readonly newLink: boolean;
}

const NEW = "created";
const KNOWN = "already exists";
const word = (isNew: boolean) => (isNew ? NEW : KNOWN);

export function asText(report: Report): string {
  const { company, plans, sites, migrations, masterKeyFile } = report;
  return [
    `ReviewRelay at ${report.serverRoot}`,
    "",
    ...(masterKeyFile === undefined
      ? []
      : [
          `  master key     written to ${masterKeyFile}: keep a copy, separate from the database's backups`,
        ]),
    `  schema         ${migrations === 0 ? "current" : `current, ${migrations} applied`}`,
    `  company        ${company.name}, ${word(company.isNew)}`,
    ...adminLines(report),
    `  plans          ${plans.map((one) => `${one.name}, ${word(one.isNew)}`).join("; ") || "none"}`,
    ...siteLines(sites),
    "",
    "Next:",
    ...nextSteps(report).map((step, i) => `  ${i + 1}. ${step}`),
  ].join("\n");
}

function adminLines({ admin, newLink, serverRoot }: Report): string[] {
  if (admin === undefined) return ["  administrator  none"];
  const lines = [`  administrator  ${admin.email}, ${word(admin.isNew)}`];
  if (admin.link !== undefined)
    lines.push(
      "                 This link sets the password, once, within seven days:",
      `                 ${admin.link}`,
    );
  if (newLink && admin.hasPassword)
    lines.push(
      "                 No link was made, because a password is set. Reset it with a mailed code at",
      `                 ${serverRoot}/dashboard; or create another administrator: --admin-email another@…`,
    );
  return lines;
}

function siteLines(sites: Result["sites"]): string[] {
  if (sites.length === 0) return ["  review sites   none"];
  return sites.map(({ slug, name, isNew, secret }, i) => {
    const head = i === 0 ? "  review sites   " : "                 ";
    const shown = secret === undefined ? "" : `; its secret, shown only now: ${secret}`;
    return `${head}${slug} (${name}), ${word(isNew)}${shown}`;
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
  if (admin.link !== undefined) return ["Open the link and choose the administrator's password"];
  return [
    `Open the link that an earlier run showed for ${admin.email}; for another one: ${commandLine("setup")} --new-link`,
  ];
}

/** Formats the report as JSON, for programs. */
export function asJsonText(report: Report): string {
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
