// The shared setup of all parts.
import type { ChildProcess } from "node:child_process";

import type { RawDb } from "../../../db/client.ts";
import { hostsOf, startSink, type Sink } from "../receivers.ts";
import { withRig, type Rig } from "../rig.ts";
import { addProvider, addTenants, type Sign, type Tenant } from "../tenants.ts";
import type { Options } from "./options.ts";

export interface LiveRig extends Rig {
  readonly options: Options;
  /** Whether `pg_stat_statements` counts statements. */
  readonly counted: boolean;
  readonly api: ChildProcess;
  readonly dispatcher: ChildProcess;
  readonly sink: Sink;
  readonly sign: Sign;
  /** Partners with one subscription and one host each. */
  readonly tenants: readonly Tenant[];
  /** URLs for receivers of additional tenants. */
  readonly spareUrls: readonly string[];
  /** Aborts on a request to stop. */
  readonly stop: AbortSignal;
  say(text: string): void;
}

export const TENANTS = 100;
const SPARE = 20;

const STATEMENTS = [
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.track_planning=on",
];
/** Settings of a soak: dead rows are vacuumed every few seconds, and retries occur within its duration. */
const AUTOVACUUM = ["autovacuum_naptime=5s", "autovacuum_vacuum_cost_delay=0"];
const SOAK_ENV = { RETRY_DELAYS_MS: "2000,4000,8000" };

/** Starts the stores and the product, runs `work`, and stops everything even if `work` throws. */
export function withLiveRig<T>(
  options: Options,
  stop: AbortSignal,
  work: (rig: LiveRig) => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  const say = (text: string) =>
    console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  const isSoak = options.soakMs !== undefined;
  const settings = [...STATEMENTS, ...(isSoak ? AUTOVACUUM : [])];
  const { tree, executable, postgres } = options;
  say(`Starting the stores, the API and a dispatcher of ${executable ?? tree} …`);
  return withRig(
    { tree, executable, postgres, settings, ...(isSoak && { env: SOAK_ENV }) },
    async (rig) => {
      const sink = await startSink();
      rig.atEnd(() => sink.child.kill("SIGTERM"));
      const [api, dispatcher] = await Promise.all([rig.start("api"), rig.start("dispatcher")]);
      const sign = await addProvider(rig);
      const urls = hostsOf(sink.port, TENANTS + SPARE);
      say(`${rig.stores.kind}. Adding ${TENANTS} partners …`);
      const tenants = await addTenants(rig, urls.slice(0, TENANTS));
      const spareUrls = urls.slice(TENANTS);
      const counted = await countStatements(rig.db);
      const own = { options, counted, api, dispatcher, sink, sign, tenants, spareUrls, stop, say };
      rig.atEnd(() => say("Stopping …"));
      return work({ ...rig, ...own });
    },
  );
}

/** Creates the extension. Returns whether it counts statements. */
async function countStatements(db: RawDb): Promise<boolean> {
  try {
    await db.sql`create extension if not exists pg_stat_statements`;
    await db.sql`select pg_stat_statements_reset()`;
    return true;
  } catch {
    return false;
  }
}
