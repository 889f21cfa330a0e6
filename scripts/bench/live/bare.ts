// Baselines of a run: how fast this machine performs the minimum work without the product.
import { connect } from "../../../db/client.ts";
import { bareLoop } from "../bare-process.ts";
import { round } from "../figures.ts";
import { hostsOf } from "../receivers.ts";
import { TENANTS, type LiveRig } from "./rig.ts";

const CONNECTIONS = 16;
const INSERT_MS = 2_500;
const POSTS = 20_000;
const ROW = "x".repeat(400);

export type Bare = Awaited<ReturnType<typeof bareLoops>>;

/** Measures inserts of one row and one commit each, and POSTs to 100 hosts, one at a time to each. */
export async function bareLoops(rig: LiveRig) {
  rig.say("Bare loops: inserts, fetch, our HTTP client …");
  // Resets the behaviour that the previous part has set for the receivers.
  await rig.sink.reset();
  const insertsPerSecond = await inserts(rig);
  const urls = hostsOf(rig.sink.port, TENANTS);
  const posts = async (sender: "fetch" | "client") => {
    const { deliveries, seconds } = await bareLoop(sender, POSTS, urls, { stop: rig.stop });
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

/** Returns the mean of two measurements, because the speed of the machine varies. */
export function meanOf(one: Bare, other: Bare): Bare {
  const mean = (of: (bare: Bare) => number) => round((of(one) + of(other)) / 2);
  return {
    insertsPerSecond: mean((bare) => bare.insertsPerSecond),
    fetchPerSecond: mean((bare) => bare.fetchPerSecond),
    clientPerSecond: mean((bare) => bare.clientPerSecond),
  };
}
