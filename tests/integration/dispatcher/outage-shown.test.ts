// An outage of our own as people and monitors see it (contract 6.17, 7.8 and 10.4), through the real routes.
import { expect, test } from "bun:test";
import { Registry } from "prom-client";

import { DispatcherTelemetry } from "../../../dispatcher/telemetry.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import type { RunningDispatcher } from "../../support/dispatch.ts";
import { startProxy } from "../../support/network/proxy.ts";
import { until } from "../../support/network/receiver.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

const { world, ending, ...given } = webhookDeliveries();

test("an outage is shown while it lasts, and counts no attempt", async () => {
  let isDown = true;
  const refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
  const proxy = ending(await startProxy(() => (isDown ? refusal : undefined)));
  const receiver = await given.receiver();
  const clock = jumpingClock();
  const dispatcher = given.dispatcher({
    db: world.database.connect(),
    http: { proxy: parseProxyUrl(`http://127.0.0.1:${proxy.port}`) },
    clock,
  });
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  const metric = metricOf(dispatcher);
  await world.emit(1);
  await until("the outage", async () => (await shownIn(id)).since !== null);
  expect(await shownIn(id)).toEqual({
    condition: "degraded",
    since: expect.any(String),
    outages: ["policy"],
  });
  expect(await metric()).toBe("1");
  expect(receiver.received).toEqual([]);
  isDown = false;
  await until("the record", async () => (await attemptsOf(id)).length > 0);
  clock.jump(60_000);
  await until("the end of the outage", async () => (await shownIn(id)).since === null);
  expect(await shownIn(id)).toEqual({ condition: "healthy", since: null, outages: [] });
  expect(await metric()).toBe("0");
  expect([...(await attemptsOf(id))]).toEqual([{ attempt: 1, outcome: "delivered" }]);
});

/** A clock whose monotonic time jumps ahead, as after the minute for which an outage is shown. */
function jumpingClock() {
  let aheadMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    jump: (ms: number) => void (aheadMs += ms),
  };
}

async function shownIn(id: string) {
  const health = await world.ask("GET", `/${id}/health`);
  const state = await world.api.call("GET", "/admin/dispatcher", { token: world.tokens.root });
  const dispatchers = state.body["dispatchers"] as { outage: string | null }[];
  return {
    condition: health.body["condition"],
    since: health.body["outage_since"],
    outages: dispatchers.flatMap(({ outage }) => outage ?? []),
  };
}

function metricOf(dispatcher: RunningDispatcher) {
  const registry = new Registry();
  new DispatcherTelemetry(registry, systemClock).watch(dispatcher);
  return async () => /^reviewrelay_outage (\d)$/m.exec(await registry.metrics())?.[1];
}

const attemptsOf = (id: string) => world.database.db.sql<{ attempt: number; outcome: string }[]>`
  select attempt, outcome from delivery_attempts where subscription_id = ${id} order by id`;
