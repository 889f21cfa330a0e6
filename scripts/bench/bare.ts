// Baselines of a run: how fast this machine performs the minimum work without the product.
import { spawn } from "node:child_process";
import { join } from "node:path";

import { connect } from "../../db/client.ts";
import { round } from "./figures.ts";
import { hostsOf } from "./receivers.ts";
import { TENANTS, type LiveRig } from "./live/rig.ts";

const CONNECTIONS = 16;
const INSERT_MS = 2_500;
const POSTS = 20_000;
const ROW = "x".repeat(400);

export type Bare = Awaited<ReturnType<typeof bareLoops>>;

/** Measures inserts of one row and one commit each, and POSTs to 100 hosts, one at a time to each. */
export async function bareLoops(rig: LiveRig) {
  rig.say("Bare loops: inserts, fetch, our HTTP client …");
  // Clears the receivers' behaviour of the previous part.
  await rig.sink.reset();
  const insertsPerSecond = await inserts(rig);
  const urls = hostsOf(rig.sink.port, TENANTS);
  const posts = async (sender: "fetch" | "client") => {
    const { deliveries, seconds } = await bareLoop(sender, POSTS, urls, rig.stop);
    return round(deliveries / seconds);
  };
  const bare = {
    insertsPerSecond,
    fetchPerSecond: await posts("fetch"),
    clientPerSecond: await posts("client"),
  };
  await rig.sink.reset();
  rig.say(
    `  ${insertsPerSecond} inserts/s, fetch ${bare.fetchPerSecond}/s, own client ${bare.clientPerSecond}/s`,
  );
  return bare;
}

async function inserts({ stores, stop }: LiveRig): Promise<number> {
  const pool = connect(stores.databaseUrl, { max: CONNECTIONS, name: "bench-bare" });
  try {
    await pool.sql`create table if not exists live_bare (id bigint generated always as identity primary key, body text)`;
    let count = 0;
    const startedAt = performance.now();
    const loop = async () => {
      while (performance.now() < startedAt + INSERT_MS && !stop.aborted) {
        await pool.sql`insert into live_bare (body) values (${ROW})`;
        count += 1;
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, loop));
    const seconds = (performance.now() - startedAt) / 1_000;
    await pool.sql`drop table live_bare`;
    return round(count / seconds);
  } finally {
    await pool.close();
  }
}

/**
 * Runs a bare loop as a process of its own. It waits asynchronously: `spawnSync` would block this process, and its
 * connection to Redis would time out.
 */
export async function bareLoop(
  sender: "fetch" | "client",
  deliveries: number,
  urls: readonly string[],
  stop?: AbortSignal,
): Promise<{ deliveries: number; seconds: number; cpuUs: number }> {
  const script = join(import.meta.dir, "bare-loop.ts");
  const child = spawn(process.execPath, [script, sender, String(deliveries), ...urls], {
    env: {
      PATH: process.env["PATH"] ?? "",
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
      BUN_CONFIG_MAX_HTTP_REQUESTS: "4096",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  stop?.addEventListener("abort", end);
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  stop?.removeEventListener("abort", end);
  if (text !== "") return JSON.parse(text.trim().split("\n").at(-1) ?? "");
  // The signal that stopped this process may have stopped the child, too.
  if (stop?.aborted === true)
    return { deliveries: Number.NaN, seconds: Number.NaN, cpuUs: Number.NaN };
  throw new Error("The bare loop has failed.");
}

/** Returns the mean of both, because the speed of the machine varies. */
export function meanOf(one: Bare, other: Bare): Bare {
  const mean = (of: (bare: Bare) => number) => round((of(one) + of(other)) / 2);
  return {
    insertsPerSecond: mean((bare) => bare.insertsPerSecond),
    fetchPerSecond: mean((bare) => bare.fetchPerSecond),
    clientPerSecond: mean((bare) => bare.clientPerSecond),
  };
}
