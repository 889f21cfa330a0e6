// Uses the executables like a real installation, from an empty database to a signed delivery.
import assert from "node:assert/strict";
import { join } from "node:path";

import { schemaVersion } from "../../db/migrate.ts";
import { docPages } from "../../src/docs/pages.ts";
import { VERSION } from "../../src/lib/version.ts";
import { freePort, startStores, temporaryFolder } from "../demo/stores/keep.ts";
import { until } from "../demo/stores/processes.ts";
import { hmac, signedReview } from "../demo/signed-review.ts";

/** The installed executables, and how to run them. */
export interface Installed {
  /** The command lines that run the server and, if it is installed, the command line program for partners. */
  readonly server: readonly string[];
  readonly command?: readonly string[] | undefined;
  /** The working directory. */
  readonly folder: string;
  /** All variables of the processes: those of {@link settings}, the URLs of the stores, and the master key. */
  readonly env: Readonly<Record<string, string>> & Settings;
}

type Settings = Readonly<Record<"SERVER_ROOT" | "PORT" | "METRICS_PORT", string>>;

const PASSWORD = "another fine horse of ours";

/** Returns settings with free ports, for receivers on loopback. */
export async function settings() {
  const [port, metricsPort] = [await freePort(), await freePort()];
  // The dispatcher's metrics use the port after the API's, so the next port is reserved.
  await freePort();
  return {
    SERVER_ROOT: `http://127.0.0.1:${port}`,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
}

/**
 * Runs the server's commands from an empty database to a signed delivery, and requests each page that is built from a
 * file. Throws at the first step that fails.
 */
export async function useExecutables(installed: Installed, commit: string): Promise<void> {
  const version = `reviewrelay-server ${VERSION}, commit ${commit}, schema ${schemaVersion()}\n`;
  assert.equal(await succeed(installed, "--version"), version);
  await succeed(installed, "migrate");
  const setup = JSON.parse(await succeed(installed, ...SETUP));
  await succeed(installed, "doctor");
  const all = await startAll(installed);
  const log = all.stdout.text();
  try {
    await succeed(installed, "health");
    await checkWebhooks(installed, await deliver(installed.env.SERVER_ROOT, setup));
    await requestPages(installed.env.SERVER_ROOT);
    all.kill("SIGTERM");
    assert.equal(await all.exited, 0, "the status of `all` after SIGTERM");
    const others = (await log).split("\n").filter((line) => !/^(?:\{.*\})?$/.test(line));
    assert.deepEqual(others, [], "lines of the log that are not JSON");
    assert.equal((await run(installed.server, ["health"], installed)).status, 1);
  } finally {
    all.kill("SIGKILL");
  }
}

/** Runs the executables of a folder with embedded stores, in an otherwise empty temporary folder. */
export async function tryExecutables(executables: string, commit: string): Promise<void> {
  const folder = temporaryFolder("executable");
  const stores = await startStores({
    folder,
    // The keeper deletes the folder, and ends processes that still use it.
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: false },
    redis: true,
  });
  try {
    const env = {
      ...(await settings()),
      DATABASE_URL: stores.databaseUrl ?? "",
      REDIS_URL: stores.redisUrl ?? "",
      MASTER_KEY_FILE: join(folder, "master.key"),
    };
    const server = [join(executables, "reviewrelay-server")];
    const command = [join(executables, "reviewrelay")];
    await useExecutables({ server, command, folder, env }, commit);
    console.log("Started: from an empty database to a signed delivery.");
  } finally {
    await stores.stop();
  }
}

/** The command that sets up everything {@link deliver} needs. */
export const SETUP =
  "setup --company Reviews --admin-email ada@reviews.example --admin-name Ada --plan Standard=reviews --review-site google=Google --json".split(
    " ",
  );

/** Runs a program and waits for its end. */
export async function run(
  program: readonly string[],
  args: readonly string[],
  { folder, env }: { readonly folder: string; readonly env: NodeJS.ProcessEnv },
) {
  const child = Bun.spawn([...program, ...args], {
    cwd: folder,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { status: await child.exited, out, err };
}

async function succeed(installed: Installed, ...args: readonly string[]): Promise<string> {
  const { status, out, err } = await run(installed.server, args, installed);
  assert.equal(status, 0, `${args[0]} ended with status ${status}:\n${out}${err}`);
  return out;
}

/** Starts the command `all`, and waits until both of its processes are ready. */
export async function startAll(
  installed: Installed,
): Promise<Bun.Subprocess<"ignore", "pipe", "inherit">> {
  const { server, folder, env } = installed;
  const child = Bun.spawn([...server, "all"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const isReady = async () => {
    assert.equal(child.exitCode, null, "`all` has ended");
    return (await isServing(installed, 0)) && isServing(installed, 1);
  };
  await until("both processes are ready", isReady).catch((error: unknown) => {
    child.kill("SIGKILL");
    throw error;
  });
  return child;
}

/** Returns whether the API (0) or the dispatcher (1) of the command `all` is ready. */
export async function isServing({ env }: Installed, at: 0 | 1): Promise<boolean> {
  const url = `http://127.0.0.1:${Number(env.METRICS_PORT) + at}/readyz`;
  return (await fetch(url).catch(() => undefined))?.status === 200;
}

/**
 * Reports a first review after the setup, waits until it is delivered to a receiver at `hostname`, and verifies the
 * signature. Returns a token of the partner's owner.
 */
export async function deliver(root: string, setup: Setup, hostname = "127.0.0.1"): Promise<string> {
  const received: { body: string; signature: string | null }[] = [];
  const receiver = Bun.serve({
    port: 0,
    hostname,
    async fetch(request) {
      const signature = request.headers.get("x-svc-signature");
      received.push({ body: await request.text(), signature });
      return new Response(null, { status: 204 });
    },
  });
  try {
    const { token, siteId } = await makePartner(root, setup);
    const wanted = { label: "First", delivery_kind: "immediate", webhook_url: receiver.url.href };
    const { secret } = await call(root, "partner/webhooks", { token, body: wanted });
    const { body, signature } = signedReview(siteId, setup.review_sites[0].secret);
    const headers = { "X-Provider-Signature": signature };
    await call(root, "providers/google/events", { body, headers });
    await until("the delivery arrives", () => received.length > 0);
    const [first] = received;
    assert.equal(first?.signature, `sha256=${hmac(secret, first?.body ?? "")}`);
    return token;
  } finally {
    await receiver.stop(true);
  }
}

/** Checks that the command line program for partners lists the subscription. */
async function checkWebhooks(installed: Installed, token: string): Promise<void> {
  if (installed.command === undefined) return;
  const { SERVER_ROOT: root } = installed.env;
  const env = { ...installed.env, REVIEWRELAY_SERVER: root, REVIEWRELAY_TOKEN: token };
  const webhooks = await run(installed.command, ["webhooks"], { ...installed, env });
  assert.match(webhooks.out, /First/, `reviewrelay webhooks: ${webhooks.err}`);
}

/** Accepts the invitation of the setup, and makes a partner with a review site. Returns a token of its owner. */
async function makePartner(root: string, setup: Setup): Promise<{ token: string; siteId: number }> {
  const code = /invitation=([^&]+)/.exec(setup.admin.link)?.[1];
  const invited = { body: { code, password: PASSWORD } };
  const { token: admin } = await call(root, "auth/invitation", invited);
  const make = (path: string, body: object) => call(root, `admin/${path}`, { token: admin, body });
  const list = async (path: string) => (await call(root, `admin/${path}`, { token: admin })).data;
  const partner = await make("partners", { name: "Northwind" });
  const [plan] = await list("plans");
  const ofPartner = { name: "Alder", partner_id: partner.id, plan_id: plan.id };
  const account = await make("accounts", ofPartner);
  const store = await make("stores", { account_id: account.id, name: "Alder East" });
  const [provider] = await list("providers");
  const site = await make("store-review-sites", { store_id: store.id, provider_id: provider.id });
  const email = "owner@northwind.example";
  const owner = { company_id: partner.id, role: "partner_owner", name: "Pat", email };
  await make("users", { ...owner, password: PASSWORD });
  const { token } = await call(root, "login", { body: { email, password: PASSWORD } });
  return { token, siteId: site.id };
}

/**
 * Requests all pages and files below `/docs`, which the sources list, and two other pages that are built from files.
 */
async function requestPages(root: string): Promise<void> {
  const pages = docPages(root, () => ({})).map(({ path }) => path);
  for (const path of ["/dashboard", "/openapi.json", ...pages]) {
    const { status } = await fetch(root + path);
    assert.equal(status, 200, `GET ${path} was answered ${status}`);
  }
}

/** The fields of the setup's output that are read here. */
interface Setup {
  readonly admin: { readonly link: string };
  readonly review_sites: readonly [{ readonly secret: string }];
}

/** The fields of the API's answers that are read here. Each answer has some of them. */
interface Answer {
  readonly id: number;
  readonly token: string;
  readonly secret: string;
  readonly data: readonly [Answer];
}

interface Call {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the call a POST. */
  readonly body?: string | object;
}

async function call(root: string, path: string, given: Call): Promise<Answer> {
  const { token, headers, body } = given;
  const response = await fetch(`${root}/api/v1/${path}`, {
    headers: {
      "Content-Type": "application/json",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${path} was answered ${response.status}: ${text}`);
  return JSON.parse(text);
}
