import { describe, expect, test } from "bun:test";

import { PASSWORD } from "../support/api.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import { startRawReceiver } from "../support/network/raw-receiver.ts";
import { until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { startBesideNames } from "../support/processes/beside-names.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";

/*
 * A tenant chooses host names and with them a name server, which may never answer. A lookup then lasts until its timeout.
 * The other work of the processes must continue meanwhile.
 */

const SILENT = 32;

describe.skipIf(lacks("mounts"))(`beside ${SILENT} names with a silent name server`, () => {
  const askedForSilent = () => SILENT_NAMES.reduce((sum, name) => sum + world.names.asked(name), 0);

  test("of 32 tenants, a healthy receiver gets its ten events before the first silent lookup times out", async () => {
    const subscribe = (host: string) => world.subscribe(`http://${host}:${receiver.port}/`);
    const silent = await Promise.all(SILENT_NAMES.map(subscribe));
    const healthy = await subscribe(GOOD);
    const attempts = async (ids: readonly string[]) =>
      (await world.db.sql`select from delivery_attempts where subscription_id = any(${ids})`)
        .length;
    const asked = askedForSilent();
    const dispatcher = new DispatcherProcess(world.env, world.names);
    dispatcher.start();
    try {
      await world.emit(silent.map(({ tenant }) => tenant));
      await until("a silent name is looked up", () => askedForSilent() > asked);
      await world.emit(Array.from({ length: 10 }, () => healthy.tenant));
      await until(
        "the healthy receiver has all",
        async () => (await attempts([healthy.subscriptionId])) === 10,
      );
      expect(await attempts(silent.map(({ subscriptionId }) => subscriptionId))).toBe(0);
      expect(world.names.asked(GOOD)).toBeGreaterThanOrEqual(10);
    } finally {
      await dispatcher.kill();
    }
  });

  test("a sign-in at another partner is answered before the updates that register these names", async () => {
    const api = await ApiProcess.start(world.env, world.names);
    try {
      const { send } = await world.signIn(api);
      const fields = { label: "x", webhook_url: `http://${GOOD}/`, delivery_kind: "immediate" };
      const made = await send("POST", "", fields);
      const change = (name: string) =>
        send("PATCH", `/${String(made.body["id"])}`, { webhook_url: `http://${name}/` });
      // Each update waits 2 s for its lookup. If the machine is so busy that a sign-in takes longer, the test tries
      // again.
      await until("a sign-in is answered before the updates", async () => {
        const asked = askedForSilent();
        let answered = 0;
        const updates = SILENT_NAMES.map(async (name) => {
          const { status } = await change(name);
          answered += 1;
          return status;
        });
        await until("a name is looked up", () => askedForSilent() > asked);
        expect((await api.login("owner@p2.test", PASSWORD)).status).toBe(200);
        const isFirst = answered === 0;
        expect(new Set(await Promise.all(updates))).toEqual(new Set([200]));
        return isFirst;
      });
    } finally {
      api.kill();
    }
  });
});

const SILENT_NAMES = Array.from({ length: SILENT }, (_, n) => `silent-${n}.test`);

const GOOD = "good.test";

const world = fixture(() => {
  const silent = SILENT_NAMES.map((name) => [name, () => "silence" as const] as const);
  const good = () => ({ addresses: ["127.0.0.1"] });
  return startBesideNames({ [GOOD]: good, ...Object.fromEntries(silent) }, "127.0.0.1");
}, !lacks("mounts"));

const receiver = fixture(
  () => startRawReceiver("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
  !lacks("mounts"),
);
