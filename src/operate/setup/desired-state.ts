// Determines what `setup` has to create. Each value comes from a flag; without one, from a setting; without either, from a
// question at the terminal.
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";

import { Value } from "@sinclair/typebox/value";

import {
  type NewPlan,
  type NewProvider,
  PlanBody,
  ProviderBody,
} from "../../tenants/store-model.ts";
import { displayName } from "../../tenants/model.ts";
import { settingOf, type Env } from "../../lib/settings-reader.ts";
import { commandLine } from "../../../db/executable.ts";
import { isMailAddress, spellingOf } from "../../lib/email.ts";

export const USAGE = `Usage: ${commandLine("setup")} [flags]

Creates missing records and does not change existing ones, so you can run it repeatedly. Asks for missing values at a
terminal. Each flag can also be set as an environment variable.

  --company NAME              SETUP_COMPANY       the company that runs the platform
  --admin-email ADDRESS       SETUP_ADMIN_EMAIL   an administrator, who gets a link to choose a password
  --admin-name NAME           SETUP_ADMIN_NAME
  --plan NAME=FEATURE,…       SETUP_PLANS         plans for accounts; repeat the flag, or separate with ;
  --review-site SLUG=NAME     SETUP_REVIEW_SITES  sites that report reviews; repeat the flag, or separate with ;
  --new-link                                      creates a new link for an administrator without a password
  --json                                          print the result as JSON`;

const OPTIONS = {
  company: { type: "string" },
  "admin-email": { type: "string" },
  "admin-name": { type: "string" },
  plan: { type: "string", multiple: true },
  "review-site": { type: "string", multiple: true },
  "new-link": { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Error about flags or settings from which no valid desired state can be read. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface DesiredState {
  company: string | undefined;
  /** The administrator to create or to find, with a normalised email; undefined if none is named. */
  admin: { email: string; name: string } | undefined;
  plans: readonly Required<NewPlan>[];
  sites: readonly NewProvider[];
  newLink: boolean;
}

/** The kinds of records of which the database has none yet. The setup asks for them. */
export interface MissingRecords {
  readonly company: boolean;
  readonly admin: boolean;
  readonly plans: boolean;
  readonly sites: boolean;
}

export function readDesiredState(args: readonly string[], env: Env) {
  const { values } = parseStrictly(args);
  const text = (flag: string | undefined, setting: string) => flag ?? settingOf(env, setting);
  const list = (flags: readonly string[] | undefined, setting: string) =>
    flags ?? splitList(settingOf(env, setting) ?? "");
  const email = text(values["admin-email"], "SETUP_ADMIN_EMAIL");
  const desired: DesiredState = {
    company: nameOf("company", text(values.company, "SETUP_COMPANY")),
    admin:
      email === undefined
        ? undefined
        : adminOf(email, values["admin-name"] ?? settingOf(env, "SETUP_ADMIN_NAME")),
    plans: list(values.plan, "SETUP_PLANS").map(planOf),
    sites: list(values["review-site"], "SETUP_REVIEW_SITES").map(siteOf),
    newLink: values["new-link"],
  };
  return { desired, asJson: values.json, isHelpWanted: values.help };
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

const splitList = (text: string) =>
  text
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one !== "");

function adminOf(typed: string, given: string | undefined) {
  const email = spellingOf(typed);
  if (!isMailAddress(email))
    throw new UsageError(
      "The administrator's email must be a single address without a display name.",
    );
  return { email, name: nameOf("administrator", given?.trim() || email) };
}

/** Returns the name if it is undefined or meets the rule of the API for names. Throws a UsageError otherwise. */
function nameOf<T extends string | undefined>(whose: string, name: T): T {
  if (name === undefined || Value.Check(displayName, name)) return name;
  throw new UsageError(`The name of the ${whose} ${displayName["explain"]}.`);
}

function planOf(text: string): Required<NewPlan> {
  const [name = "", features = ""] = pairOf(text);
  const plan = {
    name,
    features: features
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean),
  };
  if (!Value.Check(PlanBody, plan))
    throw new UsageError(
      `The plan "${text}" must be a name, or NAME=feature,feature with features of a-z, 0-9 and _.`,
    );
  return plan;
}

function siteOf(text: string): NewProvider {
  const [slug = "", name = slug] = pairOf(text);
  const site = { slug, name };
  if (!Value.Check(ProviderBody, site))
    throw new UsageError(
      `The review site "${text}" must be SLUG=NAME, the slug of a-z, 0-9, - and _ (google=Google).`,
    );
  return site;
}

/** Splits a text at the first `=` and trims both parts. Without `=`, the result has one element. */
function pairOf(text: string): string[] {
  const at = text.indexOf("=");
  const parts = at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  return parts.map((part) => part.trim());
}

/**
 * Asks at the terminal for the missing records that no flag or setting names. Without a terminal, nothing is asked, and
 * a UsageError is thrown if the administrator is missing.
 */
export async function completeDesiredState(
  desired: DesiredState,
  missing: MissingRecords,
): Promise<DesiredState> {
  const asks = isAnswered(desired, missing) ? undefined : askAtTerminal();
  if (asks === undefined) {
    if (missing.admin && desired.admin === undefined)
      throw new UsageError(
        "There is no administrator yet. Set --admin-email (or SETUP_ADMIN_EMAIL), or run this command at a terminal.",
      );
    return desired;
  }
  const { ask, close } = asks;
  try {
    const { company, admin, plans, sites } = desired;
    return {
      ...desired,
      company:
        company ??
        (missing.company
          ? nameOf(
              "company",
              await ask("Name of the company that runs the platform", "ReviewRelay"),
            )
          : undefined),
      admin:
        admin ??
        (missing.admin
          ? adminOf(
              await ask("Email of the first administrator"),
              await ask("Name of the first administrator", "Administrator"),
            )
          : undefined),
      plans:
        plans.length > 0 || !missing.plans
          ? plans
          : splitList(await ask("Plans of accounts, as NAME=feature,feature; …", "Standard")).map(
              planOf,
            ),
      sites:
        sites.length > 0 || !missing.sites
          ? sites
          : splitList(await ask("Review sites, as slug=Name; …", "google=Google")).map(siteOf),
    };
  } finally {
    close();
  }
}

function isAnswered(
  { company, admin, plans, sites }: DesiredState,
  missing: MissingRecords,
): boolean {
  const open = [
    missing.company && company === undefined,
    missing.admin && admin === undefined,
    missing.plans && plans.length === 0,
    missing.sites && sites.length === 0,
  ];
  return !open.includes(true);
}

function askAtTerminal() {
  if (!process.stdin.isTTY) return undefined;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const ask = async (question: string, fallback?: string): Promise<string> => {
    const hint = fallback === undefined ? "" : ` [${fallback}]`;
    for (;;) {
      const answer = (await terminal.question(`${question}${hint}: `)).trim() || fallback;
      if (answer !== undefined) return answer;
    }
  };
  return { ask, close: () => terminal.close() };
}
