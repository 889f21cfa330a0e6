// What whoever runs the setup wants: by flags, else by settings, else asked at the terminal.
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";

import { Value } from "@sinclair/typebox/value";

import {
  type NewPlan,
  type NewProvider,
  PlanBody,
  ProviderBody,
} from "../../src/tenants/store-model.ts";
import { normaliseEmail } from "../../src/auth/email.ts";
import { settingOf, type Env } from "../../src/lib/settings-reader.ts";
import { isMailAddress } from "../../src/outbox/mail.ts";

export const USAGE = `Usage: bun run setup [flags]

Makes what an empty database lacks, and leaves alone what is there: run it as often as you like.
What is not given is asked for at a terminal. Each flag may also be a setting of the environment.

  --company NAME              SETUP_COMPANY       who runs the platform
  --admin-email ADDRESS       SETUP_ADMIN_EMAIL   an administrator, who is given a link to choose a password
  --admin-name NAME           SETUP_ADMIN_NAME
  --plan NAME=FEATURE,…       SETUP_PLANS         of accounts; several by several flags, or separated by ;
  --review-site SLUG=NAME     SETUP_REVIEW_SITES  that reports reviews; several likewise
  --new-link                                      another link for an administrator without a password
  --json                                          the result as JSON`;

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

/** What is wanted is not said in a way that can be understood. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface Wishes {
  company: string | undefined;
  /** The email is normalised. */
  admin: { email: string; name: string } | undefined;
  plans: readonly Required<NewPlan>[];
  sites: readonly NewProvider[];
  newLink: boolean;
}

/** What the database lacks, so that it has to be asked for. */
export interface Lacks {
  readonly company: boolean;
  readonly admin: boolean;
  readonly plans: boolean;
  readonly sites: boolean;
}

export function readWishes(args: readonly string[], env: Env) {
  const { values } = parseStrictly(args);
  const text = (flag: string | undefined, setting: string) => flag ?? settingOf(env, setting);
  const list = (flags: readonly string[] | undefined, setting: string) =>
    flags ?? splitList(settingOf(env, setting) ?? "");
  const email = text(values["admin-email"], "SETUP_ADMIN_EMAIL");
  const wishes: Wishes = {
    company: text(values.company, "SETUP_COMPANY"),
    admin:
      email === undefined
        ? undefined
        : adminOf(email, values["admin-name"] ?? settingOf(env, "SETUP_ADMIN_NAME")),
    plans: list(values.plan, "SETUP_PLANS").map(planOf),
    sites: list(values["review-site"], "SETUP_REVIEW_SITES").map(siteOf),
    newLink: values["new-link"],
  };
  return { wishes, asJson: values.json, isHelpWanted: values.help };
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
  const email = normaliseEmail(typed);
  if (!isMailAddress(email))
    throw new UsageError("The administrator's email must be one plain address.");
  return { email, name: given?.trim() || email };
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

/** What stands before and behind the first `=`; the second is absent where there is none. */
function pairOf(text: string): string[] {
  const at = text.indexOf("=");
  const parts = at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  return parts.map((part) => part.trim());
}

/** Asks for what is lacking and was not given, where somebody can answer. Throws a UsageError where nobody can. */
export async function completeWishes(wishes: Wishes, lacks: Lacks): Promise<Wishes> {
  const asks = isAnswered(wishes, lacks) ? undefined : askAtTerminal();
  if (asks === undefined) {
    if (lacks.admin && wishes.admin === undefined)
      throw new UsageError(
        "There is no administrator yet: name one by --admin-email (or SETUP_ADMIN_EMAIL), or run this at a terminal.",
      );
    return wishes;
  }
  const { ask, close } = asks;
  try {
    const { company, admin, plans, sites } = wishes;
    return {
      ...wishes,
      company:
        company ??
        (lacks.company
          ? await ask("Name of the company that runs this", "ReviewRelay")
          : undefined),
      admin:
        admin ??
        (lacks.admin
          ? adminOf(
              await ask("Email of the first administrator"),
              await ask("Their name", "Administrator"),
            )
          : undefined),
      plans:
        plans.length > 0 || !lacks.plans
          ? plans
          : splitList(await ask("Plans of accounts, as NAME=feature,feature; …", "Standard")).map(
              planOf,
            ),
      sites:
        sites.length > 0 || !lacks.sites
          ? sites
          : splitList(await ask("Review sites, as slug=Name; …", "google=Google")).map(siteOf),
    };
  } finally {
    close();
  }
}

function isAnswered({ company, admin, plans, sites }: Wishes, lacks: Lacks): boolean {
  const open = [
    lacks.company && company === undefined,
    lacks.admin && admin === undefined,
    lacks.plans && plans.length === 0,
    lacks.sites && sites.length === 0,
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
