import { expect, test } from "bun:test";

import { startValkeyBridge } from "../../../scripts/demo/stores/valkey-bridge.ts";
import { connectRedis } from "../../../src/lib/redis.ts";
import { createSchedule } from "../../../src/outbox/schedule.ts";
import { createTestBox, silentLog, startDispatcher } from "../../support/dispatch.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

test("a dispatcher delivers in order by its sweep while Redis hangs, and gets wakes again afterwards", async () => {
  const database = await createDatabase();
  const { db } = database;
  const server = startValkeyBridge({ port: 0, onFailure: (error) => console.error(error) });
  const proxy = await startTcpProxy(server.port);
  const url = (port: number) => `redis://127.0.0.1:${port}`;
  const [behind, direct] = [
    await connectRedis(url(proxy.port), silentLog),
    await connectRedis(url(server.port), silentLog),
  ];
  const api = createSchedule(direct, "hang:", silentLog);
  const schedule = createSchedule(behind, "hang:", silentLog);
  let heard = 0;
  const box = createTestBox();
  const dispatcher = startDispatcher({
    db,
    box,
    schedule: {
      ...schedule,
      onWake: (listener) =>
        schedule.onWake((wake) => {
          heard += 1;
          listener(wake);
        }),
    },
  });
  const target = await Receiver.start();
  const tenant = await insertTenant(db);
  await insertSubscription({ db, box }, { partnerId: tenant.partnerId, url: target.url });
  const ids: string[] = [];
  const emit = async () => {
    const actions = [reviewAction(tenant), reviewAction(tenant)];
    await api.wake(await record(db, actions));
    ids.push(...actions.map(({ eventId }) => eventId));
  };
  const arrived = () => target.received.length === ids.length;
  try {
    await emit();
    await until("the first", arrived);
    proxy.deaf = true;
    proxy.freeze();
    const before = heard;
    await emit();
    await until("the events of the sweep", arrived);
    expect(heard).toBe(before);
    proxy.deaf = false;
    await until("a wake is heard", async () => {
      await emit();
      await Bun.sleep(100);
      return heard > before;
    });
    await until("the rest", arrived);
    expect(target.eventIds).toEqual(ids);
  } finally {
    await dispatcher.stop();
    await target.stop();
    behind.disconnect();
    direct.disconnect();
    proxy.stop();
    server.stop();
    await database.drop();
  }
});
