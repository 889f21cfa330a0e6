// Proves docs/operations/recovery.md, "Loss of Redis", with Sentinels.
import { describe, expect, test } from "bun:test";

import { migrate } from "../../db/migrate.ts";
import { startSentinels } from "../../scripts/demo/stores/redis-servers.ts";
import { until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import {
  addEndpoints,
  drills,
  expectAllInOrder,
  openDb,
  settingsOf,
  startDurableStores,
  startLoad,
} from "../shipping/drill.ts";
import { lacks } from "../support/needs.ts";

const begin = drills();

describe("while Sentinels replace the master of Redis, every request is answered and all is delivered in order", () => {
  test.skipIf(lacks("redis-server")).each(["SIGKILL", "SIGSTOP"] as const)(
    "after %s of the master",
    async (signal) => {
      const drill = begin();
      const { databaseUrl } = await startDurableStores(drill, { postgres: true });
      const sentinels = await startSentinels();
      drill.atEnd(() => sentinels.stop());
      await migrate(databaseUrl);
      const db = openDb(drill, databaseUrl);
      const endpoints = await addEndpoints(drill, db);
      const env = settingsOf(drill, { databaseUrl, redisUrl: sentinels.url });
      for (let n = 0; n < DISPATCHERS; n++) {
        const dispatcher = new DispatcherProcess(env);
        dispatcher.start();
        drill.atEnd(() => dispatcher.stop());
      }
      const api = await ApiProcess.start({ ...env, RATE_LIMITS: "on" });
      drill.atEnd(() => api.kill());

      const load = startLoad(api, endpoints);
      await until("events before the failover", () => load.accepted.length >= EVENTS);
      const master = await sentinels.master();
      master.signal(signal);
      await until("a new master", async () => (await sentinels.master()) !== master);
      const before = load.accepted.length;
      await until("events after the failover", () => load.accepted.length >= before + EVENTS);
      await load.stop();
      expect([...load.answers.keys()]).toEqual(["200"]);
      await expectAllInOrder(db, endpoints, load.accepted);
      if (signal === "SIGSTOP") master.signal("SIGCONT");
    },
  );
});

const DISPATCHERS = 2;
/** The number of events before and after the failover. */
const EVENTS = 500;
