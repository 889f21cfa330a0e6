// Runs the real start command in temporary folders.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTransport } from "nodemailer";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import type { RunState } from "../../../scripts/demo/data-dir.ts";
import { waitUntilReady } from "../../../scripts/demo/parts.ts";
import { waitForPostgres, waitForRedis } from "../../../scripts/demo/reachable.ts";
import { startSmtpSink } from "../../../scripts/demo/smtp-sink.ts";
import { commandLine, isAlive, waitUntil } from "../../../scripts/demo/stores/processes.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";

const TIMEOUT_MS = 120_000;

describe("the start command", () => {
  const settings: Record<string, string> = {};
  let dataDir: string;
  let root: string;
  let first: Started;

  beforeAll(async () => {
    dataDir = temporaryFolder();
    const port = await freePort();
    root = `http://127.0.0.1:${port}`;
    Object.assign(settings, { DATA_DIR: dataDir, PORT: String(port), DISPATCHERS: "2" });
    first = launch(settings);
    await untilUp(first);
  }, TIMEOUT_MS);

  async function status(path: string): Promise<number | undefined> {
    return fetch(root + path).then(
      (response) => response.status,
      () => undefined,
    );
  }

  test("answers /healthz and /readyz with 200", async () => {
    expect(await status("/healthz")).toBe(200);
    expect(await status("/readyz")).toBe(200);
  });

  test("shows each part with its role in the process list", () => {
    const roles = readState(dataDir).children.map(({ pid, role }) => {
      expect(commandLine(pid)).toEndWith(` ${role}`);
      return role;
    });
    expect(roles.toSorted()).toEqual(["api", "dispatcher", "dispatcher"]);
  });

  test("writes secrets readable only by its user", () => {
    for (const name of ["demo.json", "run.json", "master.key", "logs/api.log"]) {
      expect([name, statSync(join(dataDir, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  test(
    "restarts a killed part",
    async () => {
      for (const role of ["dispatcher", "api"]) {
        const before = readState(dataDir).children;
        const victim = before.find((child) => child.role === role);
        if (victim === undefined) throw new Error(`no ${role} is running`);
        process.kill(victim.pid, "SIGKILL");
        const replaced = () => {
          const now = readState(dataDir).children;
          return now.length === before.length && now.every(({ pid }) => pid !== victim.pid);
        };
        expect(await waitUntil(replaced, RESTART_WITHIN_MS)).toBe(true);
      }
      const deadline = performance.now() + RESTART_WITHIN_MS;
      while ((await status("/healthz")) !== 200 && performance.now() < deadline)
        await Bun.sleep(50);
      expect(await status("/healthz")).toBe(200);
    },
    TIMEOUT_MS,
  );

  test(
    "rejects a second start on the same data without being affected",
    async () => {
      const before = readState(dataDir);
      const second = await refusal({ ...settings, PORT: String(await freePort()) });
      expect(second.status).toBe(1);
      expect(second.screen).toContain(
        `DATA_DIR ${dataDir} is in use by another start (process ${first.process.pid}`,
      );
      expect(readState(dataDir)).toEqual(before);
      expect(await status("/healthz")).toBe(200);
    },
    TIMEOUT_MS,
  );

  test(
    "rejects an occupied port and names the setting",
    async () => {
      const second = await refusal({ ...settings, DATA_DIR: temporaryFolder() });
      expect(second.status).toBe(1);
      expect(second.screen).toContain(`PORT ${settings["PORT"]} on 127.0.0.1 is in use`);
    },
    TIMEOUT_MS,
  );

  test(
    "restarts its stores at the same addresses when they die",
    async () => {
      const data = join(realpathSync(join(dataDir, "postgres")), "data");
      const postmaster = () =>
        Number.parseInt(readFileSync(join(data, "postmaster.pid"), "utf8"), 10);
      const old = postmaster();
      const { database_url: url } = readState(dataDir);
      process.kill(old, "SIGKILL");
      await waitForPostgres(url, { stop: AbortSignal.timeout(STOP_WITHIN_MS) });
      expect(postmaster()).not.toBe(old);
    },
    TIMEOUT_MS,
  );

  test(
    "stops on SIGTERM with status 0 and leaves no process",
    async () => {
      first.process.kill("SIGTERM");
      expect(await waitUntil(first.hasEnded, STOP_WITHIN_MS)).toBe(true);
      expect(first.process.exitCode).toBe(0);
      expect(describeAll(processesOf(dataDir))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "leaves nothing running when it is killed, and recovers at the next start",
    async () => {
      const users = demoUsers(dataDir);
      const killed = launch(settings);
      await untilUp(killed);
      expect(processesOf(dataDir).length).toBeGreaterThan(5);
      killed.process.kill("SIGKILL");
      await waitUntil(() => processesOf(dataDir).length === 0, STOP_WITHIN_MS);
      expect(describeAll(processesOf(dataDir))).toEqual([]);

      const next = launch(settings);
      await untilUp(next);
      expect(await status("/healthz")).toBe(200);
      expect(demoUsers(dataDir)).toEqual(users);
      next.process.kill("SIGINT");
      expect(await waitUntil(next.hasEnded, STOP_WITHIN_MS)).toBe(true);
      expect(describeAll(processesOf(dataDir))).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

test.each([
  ["--help", 0],
  ["-h", 0],
  ["--hepl", 2],
])("%s prints the usage of the start command and starts nothing", async (argument, status) => {
  const dataDir = join(temporaryFolder(), "data");
  const one = launch({ DATA_DIR: dataDir }, [argument]);
  await waitUntil(one.hasEnded, UP_WITHIN_MS);
  expect(one.process.exitCode).toBe(status);
  expect(one.screen()).toContain("Usage: npx -y bun@1.4.4 scripts/start.ts");
  expect(existsSync(dataDir)).toBe(false);
});

describe("the start command rejects", () => {
  test("a folder with other files", async () => {
    const foreign = temporaryFolder();
    writeFileSync(join(foreign, "thesis.txt"), "mine");
    const { status, screen } = await refusal({ DATA_DIR: foreign });
    expect(status).toBe(1);
    expect(screen).toContain(`DATA_DIR ${foreign} holds other files (thesis.txt)`);
    expect(readdirSync(foreign)).toEqual(["thesis.txt"]);
  });

  test("a folder that cannot be created", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const { status, screen } = await refusal({ DATA_DIR: join(file, "below") });
    expect(status).toBe(1);
    expect(screen).toContain(`DATA_DIR ${file}/below cannot be used`);
  });

  test("wrong settings, and reports all of them at once", async () => {
    const { status, screen } = await refusal({
      DATA_DIR: temporaryFolder(),
      PORT: "many",
      DISPATCHERS: "17",
      RETRY_DELAYS_MS: "1,2",
      DATABASE_URL: "mysql://elsewhere",
      MASTER_KEY: "short",
    });
    expect(status).toBe(1);
    for (const name of ["PORT", "DISPATCHERS", "RETRY_DELAYS_MS", "DATABASE_URL", "MASTER_KEY"]) {
      expect(screen).toContain(`${name} must be`);
    }
  });

  test("given stores that do not answer, without showing the password", async () => {
    const limits = { stop: new AbortController().signal, patienceMs: 100 };
    const nobody = `127.0.0.1:${await freePort()}`;
    const failures = await Promise.allSettled([
      waitForPostgres(`postgres://user:secret@${nobody}/name`, limits),
      waitForRedis(`redis://:secret@${nobody}`, limits),
    ]);
    const messages = failures.map((one) =>
      one.status === "rejected" ? String(one.reason) : "reached",
    );
    expect(messages[0]).toContain(`DATABASE_URL (${nobody}/name) is not reachable`);
    expect(messages[1]).toContain(`REDIS_URL (${nobody}) is not reachable`);
    expect(messages.join()).not.toContain("secret");
  });
});

test(
  "the start command reports success only after /readyz does",
  async () => {
    const redis = await proxyBefore(process.env["TEST_REDIS_URL"] ?? "", { delayMs: 700 });
    const port = String(await freePort());
    const one = launch({
      DATA_DIR: temporaryFolder(),
      PORT: port,
      REDIS_URL: redis.in(process.env["TEST_REDIS_URL"] ?? ""),
      REDIS_PREFIX: `start-${crypto.randomUUID()}:`,
    });
    try {
      await untilUp(one);
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
    } finally {
      one.process.kill("SIGTERM");
      await waitUntil(one.hasEnded, STOP_WITHIN_MS);
      redis.stop();
    }
  },
  TIMEOUT_MS,
);

test("an API that does not become ready is reported with its readiness answer", async () => {
  const body = { status: "unavailable", checks: { postgres: "ok", redis: "failed" } };
  const api = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json(body, { status: 503 }),
  });
  const limits = { stop: new AbortController().signal, patienceMs: 100 };
  const root = api.url.origin;
  const told = () => waitUntilReady(root, limits).catch((error: unknown) => String(error));
  expect(await told()).toContain(`/readyz returned: ${JSON.stringify(body)}`);
  await api.stop(true);
  expect(await told()).toContain("/readyz returned: nothing");
});

test("the SMTP sink writes each mail to one file", async () => {
  const mailDir = join(temporaryFolder(), "mail");
  const sink = await startSmtpSink(mailDir);
  try {
    const transport = createTransport(sink.url);
    const mails = Array.from({ length: 20 }, (_, i) => ({
      from: "service@reviewrelay.example",
      to: `user${i}@example.com`,
      subject: `Mail ${i}`,
      text: `.\nYour code is ${i}.\n`,
    }));
    await Promise.all(mails.map((mail) => transport.sendMail(mail)));
    const files = readdirSync(mailDir);
    expect(files.filter((name) => name.endsWith(".eml")).length).toBe(20);
    const contents = files.map((name) => readFileSync(join(mailDir, name), "utf8"));
    expect(contents.filter((text) => /^Subject: Mail 7\r$/m.test(text)).length).toBe(1);
    expect(contents.find((text) => text.includes("Mail 7"))).toContain(
      "X-Envelope-To: <user7@example.com>",
    );
    transport.close();
  } finally {
    await sink.stop();
  }
});

const ROOT = join(import.meta.dir, "../../..");

// Time limits for a start and an end that hang. They are long enough for a busy machine.
const UP_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 60_000;

const RESTART_WITHIN_MS = 30_000;

const REFUSE_WITHIN_MS = 30_000;

interface Started {
  process: ChildProcess;
  /** Returns the whole screen output. */
  screen(): string;
  hasEnded: () => boolean;
}

const started: Started[] = [];

const folders: string[] = [];

afterAll(async () => {
  for (const one of started) one.process.kill("SIGTERM");
  await waitUntil(() => started.every((one) => one.hasEnded()), STOP_WITHIN_MS);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-start-"));
  chmodSync(folder, 0o711);
  folders.push(folder);
  return realpathSync(folder);
}

function launch(settings: Record<string, string>, parameters: readonly string[] = []): Started {
  const child = spawn(process.execPath, ["scripts/start.ts", ...parameters], {
    cwd: ROOT,
    // A minimal environment, without stores or settings from outside.
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], TMPDIR: tmpdir(), ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => (text += String(chunk)));
  }
  const one = {
    process: child,
    screen: () => text,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
  };
  started.push(one);
  return one;
}

/** Waits until the start command reports that everything is up. */
async function untilUp(one: Started): Promise<void> {
  await waitUntil(() => one.screen().includes("Stop with Ctrl-C") || one.hasEnded(), UP_WITHIN_MS);
  if (one.hasEnded()) throw new Error(`the start command ended:\n${one.screen()}`);
  expect(one.screen()).toContain("Stop with Ctrl-C");
}

async function refusal(
  settings: Record<string, string>,
): Promise<{ status: number | null; screen: string }> {
  const one = launch(settings);
  expect(await waitUntil(one.hasEnded, REFUSE_WITHIN_MS)).toBe(true);
  return { status: one.process.exitCode, screen: one.screen() };
}

function readState(dataDir: string): RunState {
  return JSON.parse(readFileSync(join(dataDir, "run.json"), "utf8")) as RunState;
}

function demoUsers(dataDir: string): unknown {
  return (JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8")) as { users: unknown }).users;
}

/** Returns every process that belongs to this folder: its environment names the folder, or it runs in it. */
function processesOf(dataDir: string): number[] {
  if (process.platform !== "linux") {
    const { pid, children } = readState(dataDir);
    return [pid, ...children.map((child) => child.pid)].filter(isAlive);
  }
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        return (
          environment.includes(`DATA_DIR=${dataDir}`) ||
          readlinkSync(`/proc/${pid}/cwd`).startsWith(`${dataDir}/`)
        );
      } catch {
        return false;
      }
    });
}

function describeAll(pids: number[]): string[] {
  return pids.map((pid) => `${pid} ${commandLine(pid)}`);
}
