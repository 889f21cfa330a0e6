// Provides the stores of a start: those that the user has named, and embedded ones for the others.
import { join } from "node:path";

import { cutLog } from "./children.ts";
import { waitForPostgres, waitForRedis } from "./reachable.ts";
import type { Settings } from "./settings.ts";
import { StartError } from "./start-error.ts";
import { type Stores, startStores } from "./stores/keep.ts";

const STORE_RESTARTS = 5;
const STORE_SETTLED_MS = 60_000;

interface BroughtUp {
  databaseUrl: string;
  redisUrl: string;
  /** The embedded stores; undefined if the user has named both. */
  embedded: Stores | undefined;
}

/** Waits for the named stores and starts the others in `folder`. Calls `fail` if the embedded stores end repeatedly. */
export async function bringUpStores(
  { folder, given }: { folder: string; given: Settings["given"] },
  end: AbortSignal,
  fail: (error: unknown) => void,
): Promise<BroughtUp> {
  const waits: Promise<void>[] = [];
  if (given.databaseUrl !== undefined)
    waits.push(waitForPostgres(given.databaseUrl, { stop: end }));
  if (given.redisUrl !== undefined) waits.push(waitForRedis(given.redisUrl, { stop: end }));
  // If both named stores cannot be reached, the error contains both reasons.
  const faults = (await Promise.allSettled(waits)).filter((wait) => wait.status === "rejected");
  if (faults.length > 0) throw new StartError(...faults.map(({ reason }) => messageOf(reason)));
  let embedded: Stores | undefined;
  if (waits.length < 2) {
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
    void keepStoresUp(embedded, end).catch(fail);
  }
  return {
    databaseUrl: given.databaseUrl ?? embedded?.databaseUrl ?? "",
    redisUrl: given.redisUrl ?? embedded?.redisUrl ?? "",
    embedded,
  };
}

/** Restarts the stores at the same addresses when their keeper ends, so that the parts can reconnect. */
async function keepStoresUp(stores: Stores, end: AbortSignal): Promise<void> {
  for (let restarts = 1; ; restarts++) {
    const upAt = performance.now();
    await stores.exited;
    if (end.aborted) return;
    if (performance.now() - upAt > STORE_SETTLED_MS) restarts = 1;
    if (restarts > STORE_RESTARTS) {
      throw new StartError("The embedded stores stop repeatedly. See stores.log in DATA_DIR/logs.");
    }
    console.error("The embedded stores stopped unexpectedly. Starting them again.");
    await stores.restart();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
