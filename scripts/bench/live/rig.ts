// The shared setup of all parts.
import type { ChildProcess } from "node:child_process";

import { hostsOf, startSink, type Sink } from "../rig.ts";
import type { Options } from "./options.ts";
import { startProduct, type Product } from "./product.ts";
import { openStores, type LiveStores } from "./stores.ts";
import { addProvider, addTenants, type Place, type Sign, type Tenant } from "./tenants.ts";

export interface LiveRig extends Place {
  readonly options: Options;
  readonly stores: LiveStores;
  readonly product: Product;
  readonly sink: Sink & { readonly child: ChildProcess };
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

/** Starts everything, runs `work`, and stops everything even if it throws. */
export async function withRig<T>(
  options: Options,
  stop: AbortSignal,
  work: (rig: LiveRig) => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  const say = (text: string) =>
    console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  const ends: (() => unknown)[] = [];
  try {
    say("Starting the stores …");
    const stores = await openStores(options.postgres, options.soakMs !== undefined);
    ends.push(() => stores.stop());
    const sink = await startSink();
    ends.push(() => sink.child.kill("SIGTERM"));
    say(`${stores.kind}. Starting the API and a dispatcher of ${options.tree} …`);
    const product = await startProduct(options.tree, stores, options.soakMs !== undefined);
    ends.push(() => product.stop());
    const place: Place = { root: product.root, db: stores.db, masterKey: product.masterKey };
    const sign = await addProvider(place);
    const urls = hostsOf(sink.port, TENANTS + SPARE);
    say(`Adding ${TENANTS} partners …`);
    const tenants = await addTenants(place, urls.slice(0, TENANTS));
    const spareUrls = urls.slice(TENANTS);
    const own = { options, stores, product, sink, sign, tenants, spareUrls, stop, say };
    return await work({ ...place, ...own });
  } finally {
    say("Stopping …");
    for (const end of ends.toReversed()) await end();
  }
}

/** Waits until the condition holds; gives up if `progress` does not change for `patienceMs`. */
export async function untilStill(
  { stop }: Pick<LiveRig, "stop">,
  holds: () => Promise<{ done: boolean; progress: number }>,
  patienceMs: number,
): Promise<boolean> {
  let last = Number.NaN;
  let movedAt = performance.now();
  for (;;) {
    const { done, progress } = await holds();
    if (done) return true;
    if (progress !== last) movedAt = performance.now();
    last = progress;
    if (stop.aborted || performance.now() - movedAt > patienceMs) return false;
    await Bun.sleep(50);
  }
}
