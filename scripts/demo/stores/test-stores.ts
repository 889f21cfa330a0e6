// The stores that the tests run on: those given, else containers, else embedded ones.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startStores } from "./keep.ts";
import { installPostgres } from "./postgres-versions.ts";

export interface TestStores {
  /** Which ones were taken, in words. */
  kind: string;
  databaseUrl: string;
  redisUrl: string;
  /** Holds whatever a test writes; it is gone after stop(), even if the runner is killed. */
  folder: string;
  stop(): Promise<void>;
}

interface Given {
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** Of the PostgreSQL that is started where none was given. */
  major: number;
}

const TEST_SETTINGS = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "max_connections=300",
];
const PROBE_MS = 3_000;
const CONTAINER_START_MS = 60_000;

export async function startTestStores(given: Given): Promise<TestStores> {
  const containers = await startContainers(given);
  const databaseUrl = given.databaseUrl ?? containers?.databaseUrl;
  const redisUrl = given.redisUrl ?? containers?.redisUrl;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "reviewrelay-test-")));
  // Root's PostgreSQL runs as another user, who passes through here.
  chmodSync(folder, 0o711);
  try {
    // The keeper runs even where nothing is left to embed, because it removes the folder whatever becomes of us.
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
    rmSync(folder, { recursive: true, force: true });
    await containers?.stop();
    throw error;
  }
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
 * Starts what was not given in containers; undefined, with a printed word why, where these do not work: no engine, no
 * right to use it, no image.
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
      // The image declares a volume, since 18 for the folder above the data.
      .withTmpFs({ [`/var/lib/postgresql${given.major < 18 ? "/data" : ""}`]: "rw" })
      .withCommand(["postgres", ...TEST_SETTINGS.flatMap((setting) => ["-c", setting])])
      // The image starts the server once to set it up, and then for good.
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
