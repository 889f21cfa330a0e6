// Part d: whether receivers that hang slow others down.
import { quantile, round } from "../figures.ts";
import { judge } from "./judge.ts";
import { atRate } from "./offer.ts";
import { prepare } from "./requests.ts";
import type { LiveRig } from "./rig.ts";
import type { Tenant } from "./tenants.ts";

export interface Hanging {
  readonly perSecond: number;
  readonly baselineP95Ms: number;
  readonly healthyP95Ms: number;
  readonly ratio: number;
  readonly healthyMissing: number;
}

/** Of the healthy half; the other half gets as much. */
const PER_SECOND = 100;
const LATEST_MS = 1_000;

export async function partD(rig: LiveRig): Promise<Hanging> {
  rig.say("(d) half of the receivers hang");
  const half = rig.tenants.length / 2;
  const healthy = rig.tenants.slice(0, half);
  const baseline = await p95Of(rig, "d-alone", { tenants: healthy, perSecond: PER_SECOND });
  const both = await p95Of(rig, "d-beside", { tenants: rig.tenants, perSecond: 2 * PER_SECOND });
  const row = {
    perSecond: PER_SECOND,
    baselineP95Ms: round(baseline.p95Ms, 1),
    healthyP95Ms: round(both.p95Ms, 1),
    ratio: round(both.p95Ms / baseline.p95Ms, 2),
    healthyMissing: both.missing,
  };
  rig.say(
    `  healthy p95 ${row.baselineP95Ms} ms alone, ${row.healthyP95Ms} ms beside ${half} that hang: ratio ${row.ratio}`,
  );
  return row;
}

async function p95Of(
  rig: LiveRig,
  name: string,
  { tenants, perSecond }: { tenants: readonly Tenant[]; perSecond: number },
): Promise<{ p95Ms: number; missing: number }> {
  const healthy = rig.tenants.slice(0, rig.tenants.length / 2);
  const hosts = new Set(healthy.map(({ host }) => host));
  const hang = rig.tenants.filter(({ host }) => !hosts.has(host)).map(({ host }) => host);
  const count = perSecond * rig.options.seconds;
  const requests = prepare(rig.sign, tenants, { name, count, perRequest: 1 });
  await rig.sink.reset({ keys: true, hang });
  const offered = await atRate(rig.root, requests, perSecond, rig.stop);
  await Bun.sleep(LATEST_MS);
  const { arrivals } = await rig.sink.report(true);
  const mine = arrivals.filter(([, , host]) => hosts.has(host));
  const received = judge(requests, offered, mine);
  const expected = Math.round((count * healthy.length) / tenants.length);
  return {
    p95Ms: quantile(received.fromPublishMs, 0.95),
    missing: expected - received.fromPublishMs.length,
  };
}
