// `--soak 10m` measures whether any figure grows while events arrive, receivers fail and autovacuum runs.
import { round, slopeOf, type Slope } from "../figures.ts";
import { memoryOf } from "../cpu.ts";
import { evaluate, latencies } from "./evaluate.ts";
import { atRate } from "../offer.ts";
import { prepare } from "../requests.ts";
import type { LiveRig } from "./rig.ts";

const MINUTE_MS = 60_000;
/** Minimum number of steps; a short soak has shorter steps. */
const FEWEST_STEPS = 4;
/** One of this many receivers fails from time to time. */
const FAILING_OF = 10;
const LATEST_MS = 1_000;

export async function soak(rig: LiveRig, totalMs: number) {
  const stepMs = Math.min(MINUTE_MS, totalMs / FEWEST_STEPS);
  const perSecond = rig.options.rate;
  const fail = rig.tenants.filter((_, n) => n % FAILING_OF === 0).map(({ host }) => host);
  rig.say(
    `Soak: ${perSecond} events/s, ${fail.length} of ${rig.tenants.length} receivers fail at times`,
  );
  await rig.sink.reset({ keys: true, fail });
  const minutes: Minute[] = [];
  const failing = new Set(fail);
  for (let at = 0; at < totalMs && !rig.stop.aborted; at += stepMs) {
    const minute = await step(rig, minutes.length + 1, { stepMs, failing });
    minutes.push(minute);
    rig.say(
      `  ${Object.entries(minute)
        .map(([name, value]) => `${name} ${value}`)
        .join(", ")}`,
    );
  }
  return { perSecond, minutes, slopes: slopesOf(minutes) };
}

type Minute = Awaited<ReturnType<typeof step>>;

/** Offers events for `stepMs`. The delays are those of receivers that never fail. */
async function step(
  rig: LiveRig,
  minute: number,
  { stepMs, failing }: { stepMs: number; failing: ReadonlySet<string> },
) {
  const perSecond = rig.options.rate;
  const count = Math.round((perSecond * stepMs) / 1_000);
  const requests = prepare(rig.sign, rig.tenants, { name: `soak${minute}`, count, perRequest: 1 });
  const offered = await atRate(rig.root, requests, perSecond, rig.stop);
  await Bun.sleep(LATEST_MS);
  const arrivals = await rig.sink.takeArrivals();
  const healthy = arrivals.filter(([, , host]) => !failing.has(host));
  const { inversions, fromPublishMs } = evaluate(requests, offered, healthy);
  const { p50Ms, p99Ms } = latencies(fromPublishMs);
  const [dead] = await rig.db.sql<{ rows: number }[]>`
    select coalesce(sum(n_dead_tup), 0)::float8 as rows from pg_stat_user_tables where relname ~ '^outbox'`;
  return {
    minute,
    accepted: offered.count - offered.refused,
    delivered: new Set(arrivals.map(([id]) => id)).size,
    p50Ms,
    p99Ms,
    inversions,
    apiMb: round(memoryOf(rig.api.pid) / 1e6, 1),
    dispatcherMb: round(memoryOf(rig.dispatcher.pid) / 1e6, 1),
    deadOutboxRows: dead?.rows ?? Number.NaN,
  };
}

const FIGURES = ["p50Ms", "p99Ms", "apiMb", "dispatcherMb", "deadOutboxRows"] as const;

/** Computes the slope of each figure. The first step is ignored, because it is the warm-up. */
function slopesOf(minutes: readonly Minute[]): (Slope & { figure: string })[] {
  const later = minutes.slice(1);
  return FIGURES.map((figure) => ({ figure, ...slopeOf(later.map((minute) => minute[figure])) }));
}
