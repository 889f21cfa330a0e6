// Provides the stores for the tests: the given ones, else containers, else embedded ones.
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { startStores, temporaryFolder } from "./keep.ts";
import { installPostgres, postgresMajor } from "./postgres-versions.ts";

interface TestStores {
  /** The kind of the stores, for the output. */
  kind: string;
  databaseUrl: string;
  redisUrl: string;
  /** The folder for files of the tests. It is deleted after stop(), even if the runner is killed. */
  folder: string;
  stop(): Promise<void>;
}

interface Given {
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** The major version of a PostgreSQL that is started here. */
  major: number;
}

const TEST_SETTINGS = [
  "fsync=off",
  "full_page_writes=off",
  "max_connections=300",
  // Lets tests read in which order transactions were committed.
  "track_commit_timestamp=on",
];
const PROBE_MS = 3_000;
/**
 * A file system in memory, and the number of bytes that must be free in it. A run with 4 workers needs less than half
 * of them.
 */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 4 * 1024 ** 3;
const CONTAINER_START_MS = 60_000;

/**
 * Starts the stores, creates a migrated template database, runs `work` with the environment that the tests expect,
 * and stops the stores. A server from `DATABASE_URL` keeps running, but the tests' databases are dropped from it.
 */
export async function withTestStores<T>(
  work: (environment: NodeJS.ProcessEnv) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL, REDIS_URL, SMTP_URL: _, ...environment } = process.env;
  const stores = await startTestStores({
    databaseUrl: DATABASE_URL || undefined,
    redisUrl: REDIS_URL || undefined,
    major: postgresMajor(process.env.TEST_POSTGRES),
  });
  const template = `test_${randomBytes(4).toString("hex")}`;
  const ground = await import("./test-ground.ts");
  let pooler: Awaited<ReturnType<typeof ground.startPooler>>;
  try {
    console.log(`Stores: ${stores.kind}.`);
    await makeTemplate(stores.databaseUrl, template);
    pooler = await ground.startPooler(stores.databaseUrl, process.env.TEST_POOLER);
    await ground.setDefaults(stores.databaseUrl, template, process.env.TEST_POSTGRES_DEFAULTS);
    return await work({
      ...(pooler && { TEST_POOLED_URL: pooler.url }),
      ...environment,
      TEST_SIGNING_KEYS: JSON.stringify(await makeSigningKeys()),
      TEST_DATABASE_URL: stores.databaseUrl,
      TEST_TEMPLATE: template,
      TEST_REDIS_URL: stores.redisUrl,
      TMPDIR: stores.folder,
    });
  } finally {
    await pooler?.stop();
    if (DATABASE_URL) await dropDatabases(DATABASE_URL, template);
    await stores.stop();
  }
}

async function makeTemplate(databaseUrl: string, name: string): Promise<void> {
  await withAdmin(databaseUrl, (sql) => sql.unsafe(`create database ${name}`));
  const { migrate } = await import("../../../db/migrate.ts");
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  await migrate(url.href);
}

/**
 * Generates the signing keys that all databases of a run share. Otherwise the two keys of each database would take 0.3
 * s of CPU time.
 */
async function makeSigningKeys(): Promise<unknown[]> {
  const { generateSigningKey } = await import("../../../src/auth/keys/key-ring.ts");
  // Each test API seals the keys with its own master key.
  const open = { seal: (text: string) => text };
  return [await generateSigningKey(open), await generateSigningKey(open)];
}

/** Drops the template and its clones. Their names begin with the template's name. */
async function dropDatabases(databaseUrl: string, template: string): Promise<void> {
  await withAdmin(databaseUrl, async (sql) => {
    const rows: { datname: string }[] =
      await sql`select datname from pg_database where datname like ${`${template}%`}`;
    for (const { datname } of rows) await sql.unsafe(`drop database "${datname}" with (force)`);
  });
}

async function withAdmin(
  databaseUrl: string,
  work: (sql: Bun.SQL) => Promise<unknown>,
): Promise<void> {
  const sql = new Bun.SQL(databaseUrl, { max: 1 });
  try {
    await work(sql);
  } finally {
    await sql.close();
  }
}

async function startTestStores(given: Given): Promise<TestStores> {
  const containers = await startContainers(given);
  const databaseUrl = given.databaseUrl ?? containers?.databaseUrl;
  const redisUrl = given.redisUrl ?? containers?.redisUrl;
  const folder = temporaryFolder("test");
  const data = join(folder, "postgres");
  const linked = databaseUrl === undefined ? linkToMemory(data) : data;
  try {
    // The keeper runs even if it starts no store, because it deletes the folder when this process dies.
    const embedded = await startStores({
      folder,
      temporary: true,
      logFile: join(folder, "stores.log"),
      postgres:
        databaseUrl === undefined
          ? { durable: false, native: installPostgres(given.major) }
          : undefined,
      redis: redisUrl === undefined,
    });
    const stores = {
      databaseUrl: databaseUrl ?? embedded.databaseUrl ?? "",
      redisUrl: redisUrl ?? embedded.redisUrl ?? "",
    };
    return {
      ...stores,
      folder,
      kind: `PostgreSQL ${given.databaseUrl === undefined ? `${given.major} ` : ""}${origin(given.databaseUrl, databaseUrl)}, Redis ${origin(given.redisUrl, redisUrl)}`,
      async stop() {
        await embedded.stop();
        await containers?.stop();
      },
    };
  } catch (error) {
    for (const path of [linked, folder]) rmSync(path, { recursive: true, force: true });
    await containers?.stop();
    throw error;
  }
}

/**
 * Makes the future folder of PostgreSQL a link to memory if there is enough room. There, cloning the template takes a
 * tenth of the time. Returns the real folder.
 */
function linkToMemory(folder: string): string {
  if (!existsSync(MEMORY)) return folder;
  const { bavail, bsize } = statfsSync(MEMORY);
  const mount = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[1] === MEMORY);
  // The file system must allow execution, because the programs of PostgreSQL may be copied beside its data.
  if (bavail * bsize < MEMORY_BYTES || mount === undefined || mount.includes("noexec"))
    return folder;
  const data = mkdtempSync(join(MEMORY, "reviewrelay-test-"));
  symlinkSync(data, folder);
  return data;
}

function origin(given: string | undefined, used: string | undefined): string {
  if (given !== undefined) return "as given";
  return used === undefined ? "embedded" : "in a container";
}

type Containers = {
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  stop(): Promise<void>;
};

/**
 * Starts missing stores in containers. Prints the reason and returns undefined if containers cannot be used: there is
 * no engine, no permission or no image.
 */
async function startContainers(given: Given): Promise<Containers | undefined> {
  if (given.databaseUrl !== undefined && given.redisUrl !== undefined) return undefined;
  const started: { stop(): Promise<unknown> }[] = [];
  const stop = async () => {
    await Promise.allSettled(started.map((container) => container.stop()));
  };
  try {
    const { GenericContainer, Wait, getContainerRuntimeClient } = await import("testcontainers");
    await within(PROBE_MS, getContainerRuntimeClient());
    const password = crypto.randomUUID();
    const postgres = new GenericContainer(`postgres:${given.major}-alpine`)
      .withEnvironment({ POSTGRES_PASSWORD: password })
      // The image declares a volume. Since version 18 the volume is the folder above the data.
      .withTmpFs({ [`/var/lib/postgresql${given.major < 18 ? "/data" : ""}`]: "rw" })
      .withCommand(["postgres", ...TEST_SETTINGS.flatMap((setting) => ["-c", setting])])
      // The image starts the server once for its initialisation, and then again.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .withExposedPorts(5432);
    const redis = new GenericContainer("valkey/valkey:9-alpine")
      .withCommand(["valkey-server", "--save", "", "--requirepass", password])
      .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
      .withExposedPorts(6379);
    const start = async (
      needed: boolean,
      container: InstanceType<typeof GenericContainer>,
      port: number,
    ) => {
      if (!needed) return undefined;
      const running = await container.start();
      started.push(running);
      return `${running.getHost()}:${running.getMappedPort(port)}`;
    };
    const [postgresAt, redisAt] = await within(
      CONTAINER_START_MS,
      Promise.all([
        start(given.databaseUrl === undefined, postgres, 5432),
        start(given.redisUrl === undefined, redis, 6379),
      ]),
    );
    return {
      databaseUrl: postgresAt && `postgres://postgres:${password}@${postgresAt}/postgres`,
      redisUrl: redisAt && `redis://:${password}@${redisAt}`,
      stop,
    };
  } catch (error) {
    await stop();
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    console.log(`Embedded stores, because containers do not work here: ${why}`);
    return undefined;
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
