// The demo's data in a database of any version, made and used only through that version's own commands and routes.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Demo } from "../../scripts/demo/seed/seed-demo.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import type { TestProvider } from "../support/factory.ts";
import type { ApiProcess, ProcessAnswer } from "../support/processes/api-process.ts";
import { runCommand } from "../support/processes/command.ts";

/** A partner of the demo: its owner, and a connection of one of its stores with the review site that reports to it. */
export interface DemoPartner {
  readonly email: string;
  readonly password: string;
  readonly siteId: number;
  readonly provider: TestProvider;
}

/** Migrates an empty database and seeds the demo with the commands of the checkout `tree`. */
export async function seedWith(
  env: Readonly<Record<string, string>>,
  tree = ROOT,
): Promise<DemoPartner[]> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-demo-"));
  try {
    // By their names in package.json, because another checkout may have the files elsewhere.
    for (const name of ["migrate", "seed"])
      await succeed(["run", name], { ...env, DATA_DIR: folder }, tree);
    return partnersOf(JSON.parse(readFileSync(join(folder, "demo.json"), "utf8")));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function partnersOf({ users, store_review_sites, providers }: Demo): DemoPartner[] {
  return users.flatMap(({ role, email, password, partner_id }) => {
    const site = store_review_sites.find((one) => one.partner_id === partner_id);
    const provider = providers.find(({ slug }) => slug === site?.provider);
    if (role !== "partner_owner" || site === undefined || provider === undefined) return [];
    return [{ email, password, siteId: site.id, provider: { ...provider, id: 0, name: "" } }];
  });
}

/** Runs a command and throws its output unless it succeeds. */
export async function succeed(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  tree: string,
): Promise<void> {
  const { status, said } = await runCommand(args, env, { tree });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${said}`);
}

type Call = (method: string, path: string, body?: object) => Promise<ProcessAnswer["body"]>;

/** Signs a user in; returns a function that calls the API with the token and throws unless the answer is 2xx. */
export async function signIn(
  api: ApiProcess,
  { email, password }: Pick<DemoPartner, "email" | "password">,
): Promise<Call> {
  const call = async (token: unknown, method: string, path: string, body?: object) => {
    const { status, body: answer } = await api.call(method, api.root + BASE_PATH + path, {
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${String(token)}` },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (status >= 300) throw new Error(`${path} was answered ${status}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const { token } = await call(undefined, "POST", "/login", { email, password });
  return (method, path, body) => call(token, method, path, body);
}
