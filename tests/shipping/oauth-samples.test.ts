// Runs the programs and the page of the OAuth guide unchanged, against a listening server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { PASSWORD, startApi, type TestApi } from "../support/api.ts";
import { lacks, skipped } from "../support/needs.ts";
import { openBrowser } from "../support/dashboard/chromium.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { addClient, Browser } from "../support/oauth.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { pythonWith } from "../support/processes/python.ts";
import { addTenants, addUser, type Tenants } from "../support/tenants.ts";

describe("the programs of the OAuth guide", () => {
  test("are all covered here", () => {
    const names = readdirSync(SAMPLES).filter((name) => name !== "app.html");
    expect(PROGRAMS.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  });

  for (const { name, command } of PROGRAMS)
    test.skipIf(command === undefined)(`${name} signs in, refreshes and revokes`, async () => {
      if (name.endsWith(".go") && !hasGoPackage()) return void skipped("proxy of Go modules");
      const client = await addClient(database.db);
      const { email } = await freshUser();
      const run = Bun.spawn([...(command ?? []), name], {
        cwd: folder,
        env: {
          ...process.env,
          ...GO_ENV,
          CLIENT_ID: client.clientId,
          CLIENT_SECRET: client.secret,
          OAUTHLIB_INSECURE_TRANSPORT: "1",
        },
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
      });
      const problems = run.stderr.text();
      let out = "";
      for await (const part of run.stdout) {
        const isFirst = out === "";
        out += new TextDecoder().decode(part);
        if (!isFirst) continue;
        await run.stdin.write(`${await walk(out.trim(), email)}\n`);
        await run.stdin.end();
      }
      expect([await run.exited, await problems]).toEqual([0, ""]);
      expect(out.trim().split("\n").slice(1)).toEqual([email, "401"]);
    });
});

describe.skipIf(lacks("chromium"))("the page of the OAuth guide, in a browser", () => {
  /** Opens the page from another origin than the API's and returns its final text. */
  async function visit(origin: URL): Promise<string> {
    const client = await addClient(database.db, {
      confidential: false,
      redirectUris: [new URL("/app", origin).href],
    });
    page = sample("app.html").replace("YOUR_CLIENT_ID", client.clientId);
    const browser = await openBrowser();
    try {
      const tab = await browser.newPage();
      await tab.goto(new URL("/app", origin).href);
      await tab.click("#sign-in");
      const { email } = await freshUser();
      await tab.fill("#email", email);
      await tab.fill("#password", PASSWORD);
      await tab.click("button[value=sign_in]");
      await tab.click("button[value=allow]");
      const told = tab.locator("#told");
      await told.filter({ hasText: /./ }).waitFor();
      expect(tab.url()).toBe(new URL("/app", origin).href);
      const said = (await told.innerText()).replace(email, "the user's email");
      if (!(await tab.locator("#sign-out").isVisible())) return said;
      await tab.click("#sign-out");
      await told.filter({ hasText: "Signed out." }).waitFor();
      return said;
    } finally {
      await browser.close();
    }
  }

  test("signs in and out from an allowed origin", async () => {
    expect(await visit(named.url)).toBe("the user's email");
  });

  test("gets tokens from any origin, but cannot call the API from it", async () => {
    expect(await visit(unnamed.url)).toBe("Failed to fetch");
  });
});

const python = pythonWith("oauth", [
  "authlib==1.9.8",
  "requests==2.34.2",
  "requests-oauthlib==2.0.0",
]);
const PROGRAMS: readonly Program[] = [
  { name: "openid-client.mjs", command: lacks("node") ? undefined : ["node"] },
  { name: "with_authlib.py", command: python === undefined ? undefined : [python] },
  { name: "with_requests_oauthlib.py", command: python === undefined ? undefined : [python] },
  { name: "with_x_oauth2.go", command: lacks("go") ? undefined : ["go", "run"] },
];

const SAMPLES = join(import.meta.dir, "../../src/docs/oauth");
let database: TestDatabase;
let tenants: Tenants;
let root: string;
let page = "";
let users = 0;

const freshUser = () =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_owner",
    email: `sample-${++users}@p1.test`,
  });

const MODULES = join(import.meta.dir, "../../node_modules");

let api: TestApi;

let folder: string;

/** Starts a server with another origin than the API's, for the page and for an origin that is not configured. */
const pageServer = () =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(page, { headers: { "Content-Type": "text/html" } }),
  });

const named = pageServer();

const unnamed = pageServer();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "oauth-samples-"));
  database = await createDatabase();
  tenants = await addTenants(database.db);
  const port = await freePort();
  root = `http://127.0.0.1:${port}`;
  api = await startApi({
    db: database.db,
    config: { serverRoot: root, corsOrigins: [named.url.origin] },
  });
  api.listen(port);
  for (const name of readdirSync(SAMPLES)) writeFileSync(join(folder, name), sample(name));
  symlinkSync(MODULES, join(folder, "node_modules"));
});

afterAll(async () => {
  await Promise.all([named.stop(true), unnamed.stop(true), api.stop()]);
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

function sample(name: string): string {
  return readFileSync(join(SAMPLES, name), "utf8").replaceAll("{{root}}", root);
}

interface Program {
  readonly name: string;
  readonly command: readonly string[] | undefined;
}

/** Prepares Go for a program with a package; returns false if the package cannot be downloaded. */
function hasGoPackage(): boolean {
  const steps = [
    ["go", "mod", "init", "example.com/app"],
    ["go", "get", "golang.org/x/oauth2@v0.32.0"],
  ];
  const options = { cwd: folder, env: process.env, stdout: "ignore", stderr: "ignore" } as const;
  return steps.every((command) => Bun.spawnSync(command, options).success);
}

/** Performs the user's part between the client's two addresses: signs in and consents. */
async function walk(address: string, email: string): Promise<string> {
  const browser = new Browser(api);
  await browser.open(new URL(address).search.slice(1));
  await browser.signIn(email);
  const { headers } = await browser.submit({ action: "allow" });
  return headers.get("location") ?? "";
}
