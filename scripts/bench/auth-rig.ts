// The setup of the sign-in benchmark: durable stores, one real API process, and a bare Elysia route for comparison.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { readConfig, type Config } from "../../src/lib/config.ts";
import { createPasswords } from "../../src/lib/password.ts";
import { migrate } from "../../db/migrate.ts";
import { insertCompany, insertUser } from "../demo/seed/rows.ts";
import { startStores } from "../demo/stores/keep.ts";
import { BARE_ROUTE } from "./bare-route.ts";
import { cpuMs, postgresCpuMs } from "./rig.ts";

const ROOT = join(import.meta.dir, "../..");
const READY_WITHIN_MS = 15_000;
export const BENCH_PASSWORD = "correct horse battery staple";

export interface AuthRig {
  readonly db: RawDb;
  readonly config: Config;
  /** The root URL of the API. */
  readonly apiRoot: string;
  readonly apiPid: number;
  readonly bareRoot: string;
  /** The emails of users that sign in with BENCH_PASSWORD. */
  readonly emails: readonly string[];
  /** User and system time so far, in ms; undefined without /proc. */
  cpuMs(): Readonly<Record<"api" | "postgres", number | undefined>>;
  stop(): Promise<void>;
}

/** Starts everything and adds this many admins of one partner. */
export async function startAuthRig(users: number): Promise<AuthRig> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-bench-"));
  chmodSync(folder, 0o711);
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: true },
    redis: true,
  });
  const children: ChildProcess[] = [];
  try {
    const { databaseUrl = "", redisUrl = "" } = stores;
    await migrate(databaseUrl);
    const db = connect(databaseUrl, { max: 4, name: "bench" });
    const emails = await addUsers(db, "bench.example", users);
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      MASTER_KEY: randomBytes(32).toString("base64"),
      PORT: String(await freePort()),
      RATE_LIMITS: "off",
      LOG_LEVEL: "error",
    };
    const config = readConfig(env);
    const apiProcess = startChild(["src/main.ts", "api"], env);
    children.push(apiProcess);
    await untilReady(config.serverRoot);
    const bare = startChild([BARE_ROUTE], {});
    children.push(bare);
    const bareRoot = await new Promise<string>((resolve) =>
      bare.once("message", (message: { root: string }) => resolve(message.root)),
    );
    return {
      db,
      config,
      apiRoot: config.serverRoot,
      apiPid: apiProcess.pid ?? 0,
      bareRoot,
      emails,
      cpuMs: () => ({ api: cpuMs(apiProcess.pid), postgres: postgresCpuMs(folder) }),
      async stop() {
        for (const child of children) child.kill("SIGTERM");
        await db.close();
        await stores.stop();
      },
    };
  } catch (error) {
    for (const child of children) child.kill("SIGTERM");
    await stores.stop();
    throw error;
  }
}

function startChild(args: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

/** Adds a partner with this many admins at the domain; they sign in with BENCH_PASSWORD. */
export async function addUsers(db: RawDb, domain: string, users: number): Promise<string[]> {
  const createdAt = new Date();
  const companyId = await insertCompany(db, { type: "partner", name: "Bench", createdAt });
  const passwordHash = await createPasswords().hash(BENCH_PASSWORD);
  const emails = Array.from({ length: users }, (_, n) => `user-${n}@${domain}`);
  for (const email of emails)
    await insertUser(db, {
      companyId,
      email,
      name: "Bench",
      role: "partner_admin",
      passwordHash,
      createdAt,
    });
  return emails;
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" ? (address?.port ?? 0) : 0);
    }),
  );
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function untilReady(root: string): Promise<void> {
  const end = performance.now() + READY_WITHIN_MS;
  while (performance.now() < end) {
    const response = await fetch(`${root}/readyz`).catch(() => undefined);
    if (response?.ok) return;
    await Bun.sleep(50);
  }
  throw new Error(`The API was not ready within ${READY_WITHIN_MS} ms.`);
}
