// The supervisor: starts the whole service on one machine, keeps it running, and stops it.
import { createServer } from "node:net";
import { join } from "node:path";

import { causeOf } from "../../db/errors.ts";
import { migrate, SchemaError } from "../../db/migrate.ts";
import { watchForStop } from "../install/stop-signal.ts";
import { bringUpStores } from "./bring-up-stores.ts";
import { type Child, endLeftovers } from "./children.ts";
import { type DataDir, openDataDir } from "./data-dir.ts";
import { childSpecs, type Development, restartParts, waitUntilReady, watchChild } from "./parts.ts";
import { masterKey, prepareDemo } from "./prepare.ts";
import { type Settings, readSettings } from "./settings.ts";
import { type SmtpSink, startSmtpSink } from "./smtp-sink.ts";
import { StartError } from "./start-error.ts";
import { freePort, type Stores } from "./stores/keep.ts";
import { errorCode } from "./stores/processes.ts";
import { welcome } from "./welcome.ts";

/** Time in ms that the parts have to drain. It leaves 2 of the 10 s of a stop for the stores. */
const DRAIN_MS = 7_500;

/** Everything that was started, in the order of the start. */
interface Running {
  data?: DataDir;
  stores?: Stores;
  sink?: SmtpSink;
  site?: { close(): Promise<void> };
  children: Child[];
}

/**
 * Starts the service and runs it until it is stopped. With `isWatching`, the development server serves the dashboard
 * and listens at the public address (`bun run dev`).
 */
export async function start(mode: Development = { isWatching: false }): Promise<void> {
  const running: Running = { children: [] };
  const stop = watchForStop(() => {
    console.error("Stopping immediately.");
    // The keeper notices the end of this process and stops the stores.
    for (const child of running.children) child.kill();
    process.exit(1);
  });
  const failure = new AbortController();
  const end = AbortSignal.any([stop, failure.signal]);
  let status = 0;
  try {
    await bringUp(running, { mode, end, fail: (error) => failure.abort(error) });
    if (!end.aborted) await new Promise((done) => end.addEventListener("abort", done));
    if (failure.signal.aborted) throw failure.signal.reason;
  } catch (error) {
    // Aborting `end` prevents that parts are restarted when they end from now on.
    failure.abort(error);
    if (!stop.aborted) {
      status = 1;
      const isExplained = error instanceof StartError || error instanceof SchemaError;
      console.error(isExplained ? error.message : causeOf(error));
    }
  }
  if (stop.aborted) console.log(`Stopping (${String(stop.reason)}) ...`);
  await takeDown(running);
  if (stop.aborted) console.log("Stopped.");
  process.exit(status);
}

async function bringUp(
  running: Running,
  { mode, end, fail }: { mode: Development; end: AbortSignal; fail: (error: unknown) => void },
): Promise<void> {
  const { isWatching } = mode;
  const settings = readSettings(process.env);
  const data = openDataDir(settings.dataDir);
  running.data = data;
  await endLeftovers(data.earlier?.children ?? []);
  await refuseOccupiedPort(settings);
  end.throwIfAborted();

  const wanted = { folder: data.path, given: settings.given };
  const { databaseUrl, redisUrl, embedded } = await bringUpStores(wanted, end, fail);
  if (embedded !== undefined) running.stores = embedded;
  end.throwIfAborted();
  const ownerUrl = settings.given.maintenanceDatabaseUrl ?? databaseUrl;
  await migrate(ownerUrl, databaseUrl);
  end.throwIfAborted();
  if (settings.given.smtpUrl === undefined) {
    running.sink = await startSmtpSink(join(data.path, "mail"));
  }
  const key = settings.given.masterKey ?? masterKey(data.path);
  const demo = await prepareDemo({
    dataDir: data.path,
    databaseUrl: ownerUrl,
    masterKey: key,
    serverRoot: settings.serverRoot,
    smtp: running.sink,
  });
  end.throwIfAborted();
  const smtpUrl = settings.given.smtpUrl ?? running.sink?.url ?? "";
  const apiPort = isWatching ? await freePort() : settings.port;
  const values = { settings, data, databaseUrl, redisUrl, smtpUrl, key, apiPort, mode };
  startParts(running, values, fail);
  if (isWatching) {
    const { startDevServer } = await import("./dev-server.ts");
    const api = `http://127.0.0.1:${apiPort}`;
    await waitUntilReady(api, { stop: end });
    const { host, port } = settings;
    running.site = await startDevServer({
      host,
      port,
      api,
      changed: () => void restartParts(running.children, ownerUrl),
    });
  }
  await waitUntilReady(settings.localRoot, { stop: end });
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

/** The values that all parts have in common. */
interface PartValues {
  settings: Settings;
  data: DataDir;
  databaseUrl: string;
  redisUrl: string;
  smtpUrl: string;
  key: string;
  /** The port of the API. It differs from the public port if the development server runs. */
  apiPort: number;
  mode: Development;
}

/** Starts the API and the dispatchers, and keeps run.json current. */
function startParts(
  running: Running,
  { settings, data, databaseUrl, redisUrl, smtpUrl, key, apiPort, mode }: PartValues,
  fail: (error: unknown) => void,
): void {
  const env = {
    ...settings.env,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SMTP_URL: smtpUrl,
    MASTER_KEY: key,
    DATA_DIR: data.path,
    HOST: mode.isWatching ? "127.0.0.1" : settings.host,
    PORT: String(apiPort),
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
  for (const spec of childSpecs(settings, data.path, env, mode)) {
    running.children.push(watchChild(spec, writeState, fail));
  }
  writeState();
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

/** Stops the parts before the stores, because they need the stores to drain. */
async function takeDown(running: Running): Promise<void> {
  await Promise.all(running.children.map((child) => child.stop(DRAIN_MS)));
  await Promise.all([running.site?.close(), running.sink?.stop(), running.stores?.stop()]);
  running.data?.release();
}
