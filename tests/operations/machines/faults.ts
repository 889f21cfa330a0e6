import type { Machine, Network, Place } from "./network.ts";
import type { Stores } from "./stores.ts";

export interface Fault {
  readonly name: string;
  readonly lastsMs: number;
  /** Begins the fault; returns what heals it. */
  begin(): Promise<() => void>;
}

/** Longer than a health check, a lease and a deadline of a statement. */
const CUT_MS = 20_000;
/** Longer than the lease of a primary, so that the standby is promoted before the heal. */
const FAILOVER_MS = 40_000;

/** Lists every link that is cut and every machine that is killed. Roles are looked up when the fault begins. */
export function faultsOf(
  network: Network,
  stores: Stores,
  start: (machine: Machine) => void,
): Fault[] {
  const { primary, standby, master, replica, etcdLeader } = stores;
  const cut = (name: string, of: () => Promise<[Place[], Place[]]>, lastsMs = CUT_MS): Fault => ({
    name: `cut ${name}`,
    lastsMs,
    begin: async () => network.cut(...(await of())),
  });
  const isolate = (name: string, of: () => Promise<Machine>, lastsMs = CUT_MS): Fault => ({
    name: `isolate ${name}`,
    lastsMs,
    begin: async () => network.isolate(await of()),
  });
  const kill = (name: string, of: () => Promise<Machine>, lastsMs = CUT_MS): Fault => ({
    name: `kill ${name}`,
    lastsMs,
    async begin() {
      const machine = await of();
      await network.kill(machine);
      return () => start(machine);
    },
  });
  const witnesses: Place[] = ["witness-1", "witness-2", "witness-3"];
  return [
    cut("API 1 – primary", async () => [["api-1"], [await primary()]]),
    cut("dispatcher 1 – primary", async () => [["dispatcher-1"], [await primary()]]),
    cut("primary – standby", async () => [[await primary()], [await standby()]]),
    cut("primary – etcd", async () => [[await primary()], witnesses], FAILOVER_MS),
    cut("standby – etcd", async () => [[await standby()], witnesses]),
    cut("API 1 – Redis master", async () => [["api-1"], [await master()]]),
    cut("dispatcher 1 – Redis master", async () => [["dispatcher-1"], [await master()]]),
    cut("Redis master – replica", async () => [[await master()], [await replica()]]),
    cut("Redis master – Sentinels", async () => [[await master()], witnesses]),
    cut("witness 1 – witnesses 2 and 3", async () => [["witness-1"], witnesses.slice(1)]),
    cut("proxy – API 1", async () => [["proxy"], ["api-1"]]),
    cut("dispatcher 1 – receivers", async () => [["dispatcher-1"], ["outside"]]),
    isolate("the primary", primary, FAILOVER_MS),
    isolate("the Redis master", master),
    kill("API 1", async () => "api-1"),
    kill("dispatcher 1", async () => "dispatcher-1"),
    kill("the primary", primary, FAILOVER_MS),
    kill("the standby", standby),
    kill("the Redis master", master),
    kill("the Redis replica", replica),
    kill("the witness that leads etcd", etcdLeader),
    kill("the proxy", async () => "proxy"),
  ];
}
