import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../db/executable.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { connect } from "../../db/client.ts";
import { COMMIT } from "../../src/lib/version.ts";

// Builds the executables by the steps of deploy/Containerfile, and uses them in a folder that has nothing else, with an
// empty database.

/** The name of this machine's architecture in the builds of images. */
const TARGET = process.arch === "x64" ? "amd64" : process.arch;
const BUILD_MS = 180_000;

describe("the executable of the server", () => {
  test("says its version, its commit and its schema", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const [, said, commit = "", schema] =
      /^reviewrelay-server (\S+), commit (\S+), schema (\S+)\n$/.exec(run("--version").out) ?? [];
    expect([said, commit, schema]).toEqual([version, COMMIT, expect.stringMatching(/^\d{4}_\w+$/)]);
  });

  test("lists its commands, and rejects others with EX_USAGE", () => {
    const { status, out } = run("help");
    expect([status, out]).toEqual([0, expect.stringContaining("  migrate     ")]);
    expect(run("nonsense")).toMatchObject({
      status: 64,
      err: expect.stringContaining("There is no command nonsense."),
    });
  });

  test("leads from an empty database to a signed delivery by four commands, and stops both processes", async () => {
    expect(run("migrate")).toMatchObject({ status: 0 });
    const { status, out, err } = run(...SETUP.split(" "));
    expect([status, err]).toEqual([0, expect.any(String)]);
    const setup = JSON.parse(out);
    expect(run("doctor").out).toContain("schema        ");
    all = start("all");
    await until("both are ready", async () => (await isReady(0)) && (await isReady(1)), BUILD_MS);

    expect(run("health").status).toBe(0);
    const code = /invitation=([^&]+)/.exec(setup.admin.link)?.[1];
    const admin = await post("auth/invitation", { code, password: PASSWORD });
    const partner = await post("admin/partners", { name: "Northwind" }, admin.token);
    const plans = await get("admin/plans", admin.token);
    const account = await post(
      "admin/accounts",
      { name: "Alder", partner_id: partner.id, plan_id: plans.data[0].id },
      admin.token,
    );
    const store = await post(
      "admin/stores",
      { account_id: account.id, name: "Alder East" },
      admin.token,
    );
    const providers = await get("admin/providers", admin.token);
    const site = await post(
      "admin/store-review-sites",
      { store_id: store.id, provider_id: providers.data[0].id },
      admin.token,
    );
    const email = "owner@northwind.example";
    const owner = { company_id: partner.id, role: "partner_owner", name: "Pat", email };
    await post("admin/users", { ...owner, password: PASSWORD }, admin.token);
    const { token } = await post("login", { email, password: PASSWORD });
    const subscription = await post(
      "partner/webhooks",
      { label: "First", delivery_kind: "immediate", webhook_url: receiver.url },
      token,
    );
    const now = new Date().toISOString();
    const review = { external_review_id: "1", rate: 5, content: "On time.", reviewed_at: now };
    const at = { occurred_at: now, store_review_site_id: site.id };
    const event = {
      id: "1",
      type: "review.created",
      ...at,
      review: { ...review, reviewer: "Ada" },
    };
    const body = JSON.stringify({ events: [event] });
    const signature = `sha256=${hmac(setup.review_sites[0].secret, body)}`;
    await post("providers/google/events", body, undefined, { "X-Provider-Signature": signature });
    await until("the delivery", () => receiver.received.length > 0);
    const [received] = receiver.received;
    expect(received?.headers["x-svc-signature"]).toBe(
      `sha256=${hmac(String(subscription.secret), String(received?.body))}`,
    );

    const statuses = PAGES.map(async (path) => [path, (await fetch(root + path)).status]);
    expect((await Promise.all(statuses)).filter(([, answered]) => answered !== 200)).toEqual([]);

    all.kill("SIGTERM");
    expect(await ended(all)).toBe(0);
    expect([await isReady(0), await isReady(1)]).toEqual([false, false]);
    expect(run("health").status).toBe(1);
  });

  test("stops its dispatcher when its API ends, and fails", async () => {
    all = start("all");
    await until("both are ready", async () => (await isReady(0)) && (await isReady(1)));
    const children = readFileSync(`/proc/${all.pid}/task/${all.pid}/children`, "utf8").trim();
    const [api] = children.split(" ").map(Number);
    process.kill(Number(api), "SIGKILL");
    expect(await ended(all)).toBe(1);
    expect([await isReady(0), await isReady(1)]).toEqual([false, false]);
  });
});

test("the executable of the command shows its help", () => {
  const { stdout } = Bun.spawnSync([join(folder, "reviewrelay"), "help"], { env: {}, cwd: folder });
  expect(stdout.toString()).toContain("Usage: reviewrelay <command>");
});

/** Pages whose files are inside of the executable. */
const PAGES =
  `/dashboard /docs /docs/reference /docs/reference/webhooks /docs/events /docs/search.json /docs/docs.css
  /docs/reviewrelay.mjs /docs/samples/verify.ts /openapi.json`.split(/\s+/);
const SETUP =
  "setup --company Reviews --admin-email ada@reviews.example --admin-name Ada --plan Standard=reviews --review-site google=Google --json";
const PASSWORD = "another fine horse of ours";
const folder = mkdtempSync(join(tmpdir(), "executable-"));
const name = `executable_${crypto.randomUUID().slice(0, 8)}`;
const server = new URL(process.env["TEST_DATABASE_URL"] ?? "postgres://unset");
const database = new URL(server);
database.pathname = `/${name}`;
const port = await freePort();
const root = `http://127.0.0.1:${port}`;
/** The port of the API's metrics; the dispatcher's is the next one. */
const metricsPort = await freePort();
const receiver = await Receiver.start();
let all: ChildProcess | undefined;

const env = {
  DATABASE_URL: database.href,
  REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
  REDIS_PREFIX: `${name}:`,
  MASTER_KEY_FILE: join(folder, "master.key"),
  SERVER_ROOT: root,
  PORT: String(port),
  METRICS_PORT: String(metricsPort),
  WEBHOOK_ALLOW_HTTP: "1",
  WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
};

beforeAll(async () => {
  buildAsImage(join(folder, "build"));
  for (const one of ["reviewrelay-server", "reviewrelay"])
    copyFileSync(join(folder, "build/dist", one), join(folder, one));
  await administer(`create database "${name}"`);
}, BUILD_MS);

afterAll(async () => {
  all?.kill("SIGKILL");
  await receiver.stop();
  await administer(`drop database "${name}" with (force)`);
  rmSync(folder, { recursive: true });
});

/** Runs the stage `build` of deploy/Containerfile in a folder. */
function buildAsImage(target: string): void {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "bun"));
  const containerfile = readFileSync(join(ROOT, "deploy/Containerfile"), "utf8");
  const [, stage = ""] = / AS build\n([^]*?)\nFROM /.exec(containerfile) ?? [];
  for (const [, instruction, rest = ""] of stage.matchAll(/^(COPY|RUN) (.*)$/gm)) {
    if (instruction === "COPY") {
      const names = rest.split(" ");
      for (const one of names.slice(0, -1))
        cpSync(join(ROOT, one), join(target, one), { recursive: true });
      continue;
    }
    const { success, stderr } = Bun.spawnSync(["sh", "-c", rest], {
      cwd: target,
      env: { PATH: `${bin}:${process.env["PATH"] ?? ""}`, COMMIT, TARGETARCH: TARGET },
    });
    if (!success) throw new Error(`${rest}: ${stderr.toString()}`);
  }
}

async function administer(statement: string): Promise<void> {
  const db = connect(server.href, { max: 1, name: "test" });
  await db.sql.unsafe(statement);
  await db.close();
}

function run(...args: string[]): { status: number; out: string; err: string } {
  const program = [join(folder, "reviewrelay-server"), ...args];
  const { exitCode, stdout, stderr } = Bun.spawnSync(program, { env, cwd: folder });
  return { status: exitCode, out: stdout.toString(), err: stderr.toString() };
}

function start(command: string): ChildProcess {
  return spawn(join(folder, "reviewrelay-server"), [command], {
    env,
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) resolve(child.exitCode);
    child.once("exit", (status) => resolve(status));
  });
}

async function isReady(at: 0 | 1): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${metricsPort + at}/readyz`).catch(() => undefined);
  return answer?.status === 200;
}

const hmac = (secret: string, body: string) =>
  createHmac("sha256", secret).update(body).digest("hex");

async function post(
  path: string,
  body: unknown,
  token?: string,
  headers: Readonly<Record<string, string>> = {},
) {
  return call(path, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const get = (path: string, token: string) =>
  call(path, { headers: { Authorization: `Bearer ${token}` } });

async function call(path: string, init: RequestInit) {
  const response = await fetch(`${root}/api/v1/${path}`, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${text}`);
  return Object(JSON.parse(text));
}
