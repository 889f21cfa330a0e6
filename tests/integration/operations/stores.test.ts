import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Redis from "ioredis";

import { type Stores, startStores } from "../../../scripts/demo/stores/keep.ts";
import { acquireLock } from "../../../scripts/demo/stores/lock.ts";
import { isAlive, processesIn, waitUntil } from "../../../scripts/demo/stores/processes.ts";
import {
  type ValkeyServer,
  startValkeyBridge,
} from "../../../scripts/demo/stores/valkey-bridge.ts";
import { until } from "../../support/network/receiver.ts";

describe("the embedded Valkey", () => {
  let server: ValkeyServer;
  let redis: Redis;
  const failures: unknown[] = [];

  beforeAll(() => {
    server = startValkeyBridge({ port: 0, onFailure: (error) => failures.push(error) });
    redis = new Redis({ port: server.port });
  });
  afterAll(() => {
    redis.disconnect();
    server.stop();
    expect(failures).toEqual([]);
  });

  test("lets a key expire", async () => {
    await redis.set("short", "lived", "PX", 1_000);
    expect(await redis.pttl("short")).toBeWithin(1, 1_001);
    await until("it has expired", async () => (await redis.get("short")) === null);
  });

  test("delivers published messages in order", async () => {
    const subscriber = new Redis({ port: server.port });
    const received: string[] = [];
    subscriber.on("message", (_channel, message) => received.push(message));
    await subscriber.subscribe("wakes");
    const sent = Array.from({ length: 500 }, (_, i) => String(i));
    await Promise.all(sent.map((message) => redis.publish("wakes", message)));
    await waitUntil(() => received.length === sent.length, 60_000);
    expect(received).toEqual(sent);
    subscriber.disconnect();
  });

  test("answers a pipeline of 10,000 commands in order", async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 10_000; i++)
      pipeline.zadd("pipeline", i, `member ${i}`).zscore("pipeline", `member ${i}`);
    const answers = (await pipeline.exec()) ?? [];
    expect(answers.filter(([error]) => error !== null)).toEqual([]);
    expect(answers.filter((_, i) => i % 2 === 1).map(([, score]) => Number(score))).toEqual(
      Array.from({ length: 10_000 }, (_, i) => i),
    );
    expect(await redis.zcard("pipeline")).toBe(10_000);
  });

  test("passes a value larger than the socket's buffers through both ways", async () => {
    const value = "0123456789".repeat(500_000);
    await redis.set("large", value);
    expect((await redis.get("large")) === value).toBe(true);
  });

  test("serves 200 connections, and reuses the descriptors of closed ones", async () => {
    for (let round = 0; round < 3; round++) {
      const clients = Array.from({ length: 200 }, () => new Redis({ port: server.port }));
      const counts = await Promise.all(clients.map((client) => client.incr(`round ${round}`)));
      expect(new Set(counts).size).toBe(200);
      for (const client of clients) client.disconnect();
    }
    expect(await redis.ping()).toBe("PONG");
  });
});

describe("the embedded stores", () => {
  let folder: string;
  beforeAll(() => {
    folder = temporaryFolder();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function start(): Promise<Stores> {
    return startStores({
      folder,
      logFile: join(folder, "stores.log"),
      postgres: { durable: true },
      redis: true,
    });
  }
  function dataFolder(): string {
    return join(realpathSync(join(folder, "postgres")), "data");
  }
  function postmasterPid(): number {
    return Number(readFileSync(join(dataFolder(), "postmaster.pid"), "utf8").split("\n")[0]);
  }

  test("require a password", async () => {
    const stores = await start();
    try {
      const bare = new URL(stores.redisUrl ?? "");
      const redis = new Redis({ port: Number(bare.port), retryStrategy: () => null });
      redis.on("error", () => undefined);
      expect(await failureOf(redis.get("key"))).toContain("NOAUTH");
      const wrong = new URL(stores.databaseUrl ?? "");
      wrong.password = "wrong";
      const refused = query({ ...stores, databaseUrl: wrong.href }, "select 1");
      expect(await failureOf(refused)).toContain("password");
      redis.disconnect();
    } finally {
      await stores.stop();
    }
  });

  test("keep committed data when the server is killed, and restart at the same addresses", async () => {
    const stores = await start();
    try {
      await query(stores, "create table kept as select generate_series(1, 1000) as id");
      process.kill(postmasterPid(), "SIGKILL");
      await stores.exited;
      await stores.restart();
      expect(await query(stores, "select count(*)::int as count from kept")).toEqual([
        { count: 1000 },
      ]);
      const redis = new Redis(stores.redisUrl ?? "");
      expect(await redis.ping()).toBe("PONG");
      redis.disconnect();
    } finally {
      await stores.stop();
    }
  });

  test("recover when their keeper is killed and the server survives it", async () => {
    const first = await start();
    const orphan = postmasterPid();
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    expect(isAlive(orphan)).toBe(true);
    const second = await start();
    expect(isAlive(orphan)).toBe(false);
    expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
    await second.stop();
  });

  test("start over an empty postmaster.pid and over one that names another program", async () => {
    const other = spawn("sleep", ["30"], { stdio: "ignore" });
    try {
      for (const content of ["", `${other.pid}\n${dataFolder()}\n`]) {
        writeFileSync(join(dataFolder(), "postmaster.pid"), content);
        const stores = await start();
        expect(await query(stores, "select 1 as one")).toEqual([{ one: 1 }]);
        await stores.stop();
      }
      expect(other.exitCode).toBeNull();
    } finally {
      other.kill();
    }
  });

  test("stop when the process that started them is killed", async () => {
    const script = join(folder, "parent.ts");
    writeFileSync(
      script,
      `import { startStores } from ${JSON.stringify(join(import.meta.dir, "../../../scripts/demo/stores/keep.ts"))};
       await startStores({ folder: ${JSON.stringify(folder)}, logFile: ${JSON.stringify(join(folder, "stores.log"))},
         postgres: { durable: true }, redis: true });
       console.log("up");`,
    );
    const parent = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => parent.stdout.once("data", resolve));
    expect(processesIn(dataFolder())).not.toEqual([]);
    parent.kill("SIGKILL");
    expect(await waitUntil(() => processesIn(dataFolder()).length === 0, 60_000)).toBe(true);
  });
});

test("a lock excludes others until it is released", () => {
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "lock");
  const release = acquireLock(path);
  Bun.gc(true);
  expect(acquireLock(path)).toBeUndefined();
  release?.();
  const again = acquireLock(path);
  expect(again).toBeDefined();
  again?.();
  rmSync(folder, { recursive: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-stores-"));
  chmodSync(folder, 0o711);
  return folder;
}

async function query<T>(stores: Stores, statement: string): Promise<T[]> {
  const sql = new Bun.SQL(stores.databaseUrl ?? "", { max: 1 });
  try {
    return await sql.unsafe(statement);
  } finally {
    await sql.close();
  }
}

function failureOf(work: Promise<unknown>): Promise<string> {
  return work.then(() => "no failure", String);
}
