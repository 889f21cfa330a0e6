// Baselines of a run: how fast this machine performs the minimum work without the product.
import { spawn } from "node:child_process";
import { join } from "node:path";

import { connect } from "../../../db/client.ts";
import { round } from "../figures.ts";
import { hostsOf } from "../rig.ts";
import { TENANTS, type LiveRig } from "./rig.ts";

export interface Bare {
  /** One row and one commit each, over 16 connections. */
  readonly insertsPerSecond: number;
  /** POSTs to 100 hosts, one at a time to each. */
  readonly fetchPerSecond: number;
  readonly clientPerSecond: number;
}

const CONNECTIONS = 16;
const INSERT_MS = 2_500;
const POSTS = 20_000;
const ROW = "x".repeat(400);

export async function bareLoops(rig: LiveRig): Promise<Bare> {
  rig.say("Bare loops: inserts, fetch, our HTTP client …");
  // Clears the receivers' behaviour of the previous part.
  await rig.sink.reset();
  const insertsPerSecond = await inserts(rig);
  const fetchPerSecond = await posts(rig, "fetch-loop.ts");
  const clientPerSecond = await posts(rig, "client-loop.ts");
  await rig.sink.reset();
  const bare = { insertsPerSecond, fetchPerSecond, clientPerSecond };
  rig.say(
    `  ${insertsPerSecond} inserts/s, fetch ${fetchPerSecond}/s, own client ${clientPerSecond}/s`,
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

async function posts({ sink, stop }: LiveRig, script: string): Promise<number> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dir, "..", script), String(POSTS), ...hostsOf(sink.port, TENANTS)],
    {
      env: { PATH: process.env["PATH"] ?? "", BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const end = () => child.kill("SIGKILL");
  stop.addEventListener("abort", end);
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  stop.removeEventListener("abort", end);
  // The signal that stopped this process may have stopped the child, too.
  if (stop.aborted || text === "") return Number.NaN;
  const { deliveries, seconds } = JSON.parse(text.trim().split("\n").at(-1) ?? "") as {
    deliveries: number;
    seconds: number;
  };
  return round(deliveries / seconds);
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
