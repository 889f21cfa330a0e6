// The demo's data in a database of any version, made and used only through that version's own commands and routes.
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { ownMigrations } from "../../db/migrate.ts";
import type { Demo } from "../../scripts/demo/seed/seed-demo.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import type { TestProvider } from "../support/factory.ts";
import type { ApiProcess, ProcessAnswer } from "../support/processes/api-process.ts";
import { runCommand } from "../support/processes/command.ts";

/**
 * Returns a folder with the sources and the packages of a release, such as 0.1.0, or of a commit. The test files of a run
 * share it.
 */
export function checkOut(version: string): string {
  const from = /^\d+\.\d+\.\d+$/.test(version) ? commitOf(version) : version;
  const commit = run(["git", "rev-parse", "--verify", `${from}^{commit}`]).trim();
  const folder = join(tmpdir(), `reviewrelay-${commit}`);
  if (existsSync(folder)) return folder;
  // The folder gets its name when it is complete, because another test file may need it at the same time.
  const tree = mkdtempSync(`${folder}-`);
  run(["git", "archive", "--output", join(tree, "sources.tar"), commit]);
  run(["tar", "-xf", "sources.tar"], tree);
  run([process.execPath, "install", "--production", "--frozen-lockfile", "--ignore-scripts"], tree);
  try {
    renameSync(tree, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(tree, { recursive: true });
  }
  return folder;
}

/** Returns the commit that added the heading of a release to CHANGELOG.md. */
function commitOf(version: string): string {
  const commits = run(["git", "log", "--format=%H", `-S## [${version}]`, "--", "CHANGELOG.md"]);
  const oldest = commits.trim().split("\n").at(-1);
  if (!oldest) throw new Error(`No commit of this clone released ${version}; is it shallow?`);
  return oldest;
}

function run(command: readonly string[], cwd = ROOT): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd });
  const said = stdout.toString();
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${said}${stderr.toString()}`);
  return said;
}

/** The number of migrations of this version that a database of 0.1.0 lacks. Its last one is 0014. */
export const SINCE_0_1_0 = ownMigrations().filter(({ name }) => name > "0015").length;

/** The first line of a dump has these values as JSON, after `-- `. All of them belong to the demo. */
export interface DumpHeader extends DemoPartner {
  readonly masterKey: string;
  /** The ids of the events that a subscription holds, in order. */
  readonly held: readonly string[];
  /** The number of attempts that the deliveries before them took. */
  readonly attempts: number;
}

/** Reads the database of a release, and what the test must know of it. */
export function readDump(name: string): { header: DumpHeader; sql: string } {
  const sql = gunzipSync(readFileSync(join(import.meta.dir, "releases", name))).toString();
  return { header: JSON.parse(sql.slice("-- ".length, sql.indexOf("\n"))), sql };
}

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
