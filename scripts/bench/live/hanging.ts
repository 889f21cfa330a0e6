// Part d: measures whether hanging receivers delay other receivers.
import { quantile, round } from "../figures.ts";
import { evaluate } from "./evaluate.ts";
import { atRate } from "../offer.ts";
import { prepare } from "../requests.ts";
import type { LiveRig } from "./rig.ts";

/** Events per second for all receivers together, half of which are healthy. */
const PER_SECOND = 200;
const LATEST_MS = 1_000;

/** Runs the same load twice. The runs differ only in the hanging receivers. */
export async function partD(rig: LiveRig) {
  rig.say(`(d) half of the receivers hang, ${PER_SECOND}/s over all`);
  const half = rig.tenants.length / 2;
  const healthy = new Set(rig.tenants.slice(0, half).map(({ host }) => host));
  await p95Of(rig, "d-warm-up", { healthy, hang: [], seconds: 2 });
  const baseline = await p95Of(rig, "d-alone", { healthy, hang: [] });
  const hang = rig.tenants.slice(half).map(({ host }) => host);
  const beside = await p95Of(rig, "d-beside", { healthy, hang });
  const row = {
    perSecond: PER_SECOND,
    baselineP95Ms: round(baseline.p95Ms, 1),
    healthyP95Ms: round(beside.p95Ms, 1),
    ratio: round(beside.p95Ms / baseline.p95Ms, 2),
    healthyMissing: beside.missing,
  };
  rig.say(
    `  healthy p95 ${row.baselineP95Ms} ms, ${row.healthyP95Ms} ms while ${half} others hang: ratio ${row.ratio}`,
  );
  return row;
}

async function p95Of(
  rig: LiveRig,
  name: string,
  {
    healthy,
    hang,
    seconds = rig.options.seconds,
  }: { healthy: ReadonlySet<string>; hang: readonly string[]; seconds?: number },
): Promise<{ p95Ms: number; missing: number }> {
  const count = PER_SECOND * seconds;
  const requests = prepare(rig.sign, rig.tenants, { name, count, perRequest: 1 });
  await rig.sink.reset({ keys: true, hang });
  const offered = await atRate(rig.root, requests, PER_SECOND, rig.stop);
  await Bun.sleep(LATEST_MS);
  const arrivals = await rig.sink.takeArrivals();
  const mine = arrivals.filter(([, , host]) => healthy.has(host));
  const received = evaluate(requests, offered, mine);
  const expected = Math.round((count * healthy.size) / rig.tenants.length);
  return {
    p95Ms: quantile(received.fromPublishMs, 0.95),
    missing: expected - received.fromPublishMs.length,
  };
}
