import { afterEach, expect, test } from "bun:test";

import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { createTestBox, createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { startProxy } from "../../support/network/proxy.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

test("a rejection by our egress proxy counts as no attempt and leaves no record", async () => {
  const { proxy, receiver, attempts } = await deliverThrough((_, nth) =>
    nth <= REJECTIONS ? "HTTP/1.1 407 Who are you\r\n\r\n" : undefined,
  );
  await until("the delivery", () => receiver.received.length === 1);
  expect(proxy.requests).toHaveLength(REJECTIONS + 1);
  expect(receiver.received[0]?.headers["x-svc-attempt"]).toBe("1");
  await until("its record", async () => (await attempts()).length > 0);
  expect([...(await attempts())]).toEqual([{ attempt: 1, outcome: "delivered", errorCode: null }]);
});

test("a receiver that the proxy cannot reach is a failed attempt", async () => {
  const { receiver, attempts } = await deliverThrough((_, nth) =>
    nth === 1 ? "HTTP/1.1 502 Bad Gateway\r\n\r\n" : undefined,
  );
  await until("the second attempt", () => receiver.received.length === 1);
  expect(receiver.received[0]?.headers["x-svc-attempt"]).toBe("2");
  await until("both records", async () => (await attempts()).length === 2);
  expect([...(await attempts())]).toEqual([
    { attempt: 1, outcome: "retry", errorCode: "connect" },
    { attempt: 2, outcome: "delivered", errorCode: null },
  ]);
});

const REJECTIONS = 3;

const box = createTestBox();

const started: { stop(): unknown }[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

async function deliverThrough(answer: Parameters<typeof startProxy>[0]) {
  const { db } = database;
  const proxy = await startProxy(answer);
  const receiver = await Receiver.start();
  const tenant = await insertTenant(db);
  const { subscriptionId } = await insertSubscription(
    { db, box },
    { partnerId: tenant.partnerId, url: receiver.url },
  );
  const http = { proxy: parseProxyUrl(`http://127.0.0.1:${proxy.port}`) };
  const dispatcher = startDispatcher({ db, box, schedule: stores.schedule, http });
  started.push(dispatcher, receiver, proxy);
  await stores.schedule.wake(await record(db, [reviewAction(tenant)]));
  const attempts = () => db.sql<{ attempt: number; outcome: string; errorCode: string | null }[]>`
    select attempt, outcome, error_code as "errorCode" from delivery_attempts
     where subscription_id = ${subscriptionId} order by id`;
  return { proxy, receiver, attempts };
}
