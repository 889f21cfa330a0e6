// Brings up the whole service on one machine, keeps it up, and takes it down: the supervisor.
import { get } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";

import { ForeignSchemaError, migrate } from "../../db/migrate.ts";
import { type SmtpSink, startSmtpSink } from "./smtp-sink.ts";
import { type Stores, startStores } from "./stores/keep.ts";
import { errorCode } from "./stores/processes.ts";
import { type Child, type ChildSpec, cutLog, endLeftovers, superviseChild } from "./children.ts";
import { type DataDir, openDataDir } from "./data-dir.ts";
import { masterKey, prepareDemo } from "./prepare.ts";
import { waitForPostgres, waitForRedis } from "./reachable.ts";
import { type Settings, readSettings } from "./settings.ts";
import { StartError } from "./start-error.ts";
import { watchForStop } from "../install/stop-signal.ts";
import { welcome } from "./welcome.ts";

/** Leaves two of the ten seconds that a stop may take for the stores. */
const DRAIN_MS = 7_500;
const HEALTHY_WITHIN_MS = 45_000;
const STORE_RESTARTS = 5;
const STORE_SETTLED_MS = 60_000;

/** What is up, in the order in which it came up. */
interface Running {
  data?: DataDir;
  stores?: Stores;
  sink?: SmtpSink;
  children: Child[];
}

export async function start(): Promise<void> {
  const running: Running = { children: [] };
  const stop = watchForStop(() => {
    console.error("Stopping at once.");
    // The keeper sees our end and stops the stores.
    for (const child of running.children) child.kill();
    process.exit(1);
  });
  const failure = new AbortController();
  const end = AbortSignal.any([stop, failure.signal]);
  let status = 0;
  try {
    await bringUp(running, end, (error) => failure.abort(error));
    await aborted(end);
    if (failure.signal.aborted) throw failure.signal.reason;
  } catch (error) {
    if (!stop.aborted) {
      status = 1;
      const isExplained = error instanceof StartError || error instanceof ForeignSchemaError;
      console.error(isExplained ? error.message : error);
    }
  }
  if (stop.aborted) console.log(`Stopping (${String(stop.reason)}) ...`);
  await takeDown(running);
  if (stop.aborted) console.log("Stopped.");
  process.exit(status);
}

async function bringUp(
  running: Running,
  end: AbortSignal,
  fail: (error: unknown) => void,
): Promise<void> {
  const settings = readSettings(process.env);
  const data = openDataDir(settings.dataDir);
  running.data = data;
  await endLeftovers(data.earlier?.children ?? []);
  await refuseOccupiedPort(settings);
  end.throwIfAborted();

  const { databaseUrl, redisUrl } = await bringUpStores(running, settings, end, fail);
  end.throwIfAborted();
  await migrate(databaseUrl);
  end.throwIfAborted();
  if (settings.given.smtpUrl === undefined) {
    running.sink = await startSmtpSink(join(data.path, "mail"));
  }
  const key = settings.given.masterKey ?? masterKey(data.path);
  const demo = await prepareDemo({
    dataDir: data.path,
    databaseUrl,
    masterKey: key,
    serverRoot: settings.serverRoot,
    smtp: running.sink,
  });
  end.throwIfAborted();

  const smtpUrl = settings.given.smtpUrl ?? running.sink?.url ?? "";
  startProcesses(running, { settings, data, databaseUrl, redisUrl, smtpUrl, masterKey: key }, fail);
  await waitUntilHealthy(settings.localRoot, end);
  console.log(
    welcome({
      serverRoot: settings.serverRoot,
      dataDir: data.path,
      mailDir: running.sink?.mailDir,
      stores: `PostgreSQL ${origin(settings.given.databaseUrl)}, Redis ${origin(settings.given.redisUrl)}`,
      dispatchers: settings.dispatchers,
      demo,
    }),
  );
}

interface ProcessPlan {
  readonly settings: Settings;
  readonly data: DataDir;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly smtpUrl: string;
  readonly masterKey: string;
}

/** Starts the API and the dispatchers, and keeps DATA_DIR/run.json true to who runs. */
function startProcesses(
  running: Running,
  { settings, data, databaseUrl, redisUrl, smtpUrl, masterKey: key }: ProcessPlan,
  fail: (error: unknown) => void,
): void {
  const env = {
    ...settings.env,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SMTP_URL: smtpUrl,
    MASTER_KEY: key,
    DATA_DIR: data.path,
    HOST: settings.host,
    PORT: String(settings.port),
    SERVER_ROOT: settings.serverRoot,
  };
  const writeState = () =>
    data.writeState({
      pid: process.pid,
      server_root: settings.serverRoot,
      database_url: databaseUrl,
      redis_url: redisUrl,
      smtp_url: smtpUrl,
      children: running.children.flatMap((child) => {
        const pid = child.pid();
        return pid === undefined ? [] : [{ pid, role: child.role }];
      }),
    });
  writeState();
  for (const spec of childSpecs(settings, data.path, env)) {
    running.children.push(watchChild(spec, writeState, fail));
  }
  writeState();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function origin(given: string | undefined): string {
  return given === undefined ? "embedded" : "as given";
}

async function refuseOccupiedPort({ host, port }: Settings): Promise<void> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
  } catch (error) {
    const code = errorCode(error);
    if (code === "EADDRINUSE") {
      throw new StartError(
        `PORT ${port} on ${host} is in use by another program.`,
        `Stop that program, or choose another port: PORT=${port === 65_535 ? 3_000 : port + 1}.`,
      );
    }
    throw new StartError(
      `Cannot listen on HOST ${host}, PORT ${port}: ${code ?? String(error)}.`,
      "Set HOST to an address of this machine and PORT to one that this user may use (above 1023).",
    );
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

async function bringUpStores(
  running: Running,
  { given }: Settings,
  end: AbortSignal,
  fail: (error: unknown) => void,
): Promise<{ databaseUrl: string; redisUrl: string }> {
  const waits: Promise<void>[] = [];
  if (given.databaseUrl !== undefined)
    waits.push(waitForPostgres(given.databaseUrl, { stop: end }));
  if (given.redisUrl !== undefined) waits.push(waitForRedis(given.redisUrl, { stop: end }));
  // Both are named if both are missing.
  const faults = (await Promise.allSettled(waits)).filter((wait) => wait.status === "rejected");
  if (faults.length > 0) throw new StartError(...faults.map(({ reason }) => messageOf(reason)));
  let embedded: Stores | undefined;
  if (waits.length < 2) {
    const folder = running.data?.path ?? "";
    const logFile = join(folder, "logs", "stores.log");
    cutLog(logFile);
    embedded = await startStores({
      folder,
      logFile,
      postgres: given.databaseUrl === undefined ? { durable: true } : undefined,
      redis: given.redisUrl === undefined,
    }).catch((error: unknown) => {
      throw new StartError(`The embedded stores did not start: ${messageOf(error)}`);
    });
    running.stores = embedded;
    void keepStoresUp(embedded, end).catch(fail);
  }
  return {
    databaseUrl: given.databaseUrl ?? embedded?.databaseUrl ?? "",
    redisUrl: given.redisUrl ?? embedded?.redisUrl ?? "",
  };
}

/** Starts the stores again, at the same addresses, if their keeper ends: the parts then reconnect. */
async function keepStoresUp(stores: Stores, end: AbortSignal): Promise<void> {
  for (let restarts = 1; ; restarts++) {
    const upAt = performance.now();
    await stores.exited;
    if (end.aborted) return;
    if (performance.now() - upAt > STORE_SETTLED_MS) restarts = 1;
    if (restarts > STORE_RESTARTS) {
      throw new StartError("The embedded stores keep ending: see stores.log in DATA_DIR/logs.");
    }
    console.error("The embedded stores ended unexpectedly: starting them again.");
    await stores.restart();
  }
}

function childSpecs(settings: Settings, dataDir: string, env: Record<string, string>): ChildSpec[] {
  const spec = (name: string, command: ChildSpec["command"], offset: number): ChildSpec => ({
    name,
    command,
    logFile: join(dataDir, "logs", `${name}.log`),
    env:
      settings.metricsPort === undefined
        ? env
        : { ...env, METRICS_PORT: String(settings.metricsPort + offset) },
  });
  const dispatchers = Array.from({ length: settings.dispatchers }, (_, i) =>
    spec(
      i === 0 ? "dispatcher" : `dispatcher-${i + 1}`,
      ["dispatcher/main.ts", "dispatcher"],
      i + 1,
    ),
  );
  return [spec("api", ["src/main.ts", "api"], 0), ...dispatchers];
}

function watchChild(spec: ChildSpec, changed: () => void, fail: (error: unknown) => void): Child {
  return superviseChild(spec, {
    // Not at once: the first life begins before the caller knows the child.
    started: () => queueMicrotask(changed),
    died(how, delayMs) {
      console.error(
        `${spec.name} ended (${how}): starting again in ${delayMs / 1_000} s; its log is ${spec.logFile}`,
      );
    },
    refused() {
      fail(
        new StartError(
          `${spec.name} refused its settings (see above): correct them and start again.`,
        ),
      );
    },
  });
}

async function waitUntilHealthy(root: string, end: AbortSignal): Promise<void> {
  const deadline = performance.now() + HEALTHY_WITHIN_MS;
  while (!(await isHealthy(root))) {
    end.throwIfAborted();
    if (performance.now() > deadline) {
      throw new StartError(
        `The API does not answer at ${root}/healthz: see api.log in DATA_DIR/logs.`,
      );
    }
    await Bun.sleep(50);
  }
}

/** Not by fetch, which would ask a proxy (HTTP_PROXY) for an address of our own. */
function isHealthy(root: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(`${root}/healthz`, { agent: false, timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("timeout", () => request.destroy(new Error("timeout")));
    request.once("error", () => resolve(false));
  });
}

/** The parts first, while the stores are still there to drain into. */
async function takeDown(running: Running): Promise<void> {
  await Promise.all(running.children.map((child) => child.stop(DRAIN_MS)));
  await Promise.all([running.sink?.stop(), running.stores?.stop()]);
  running.data?.release();
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
}
