import { monotonicFactory } from "ulid";

import { connect } from "../db/client.ts";
import { ensurePartitions } from "../db/partitions.ts";
import { systemClock } from "../src/lib/clock.ts";
import { configOrExit, stopSignal } from "../src/lib/lifecycle.ts";
import { createLog, errorFields } from "../src/lib/log.ts";
import { connectRedis } from "../src/lib/redis.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { createSchedule } from "../src/outbox/schedule.ts";
import { createDeliver } from "./deliver.ts";
import { Dispatcher } from "./dispatcher.ts";
import { HttpClient } from "./http/client.ts";
import { createLeases } from "./leases.ts";
import { createStore } from "./store.ts";

const CONNECTIONS = 6;
const HOUR_MS = 3_600_000;

const config = configOrExit();
const clock = systemClock;
const log = createLog({ level: config.logLevel, role: "dispatcher", clock });
const stop = stopSignal(config.parentPid);

const db = connect(config.databaseUrl, { max: CONNECTIONS, name: "reviewrelay-dispatcher" });
const redis = await connectRedis(config.redisUrl, log);
const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
const client = new HttpClient({
  policy: config.egress,
  timeoutMs: config.deliveryTimeoutMs,
  ca: config.webhookCa,
  proxy: config.webhookProxy,
});

const dispatcher = new Dispatcher({
  clock,
  log,
  schedule: createSchedule(redis, config.redisPrefix, log),
  leases: createLeases(db),
  store: createStore({ db, clock, box, log, config }),
  deliver: createDeliver({ clock, client }),
  retryDelaysMs: config.retryDelaysMs,
  newUlid: monotonicFactory(),
});

void keepPartitions();
log.info("dispatcher.started", { pid: process.pid });
await dispatcher.run(stop);
client.close();
redis.disconnect();
await db.close();
log.info("dispatcher.stopped");
process.exit(0);

/** Daily partitions are made a week ahead; a missed hour costs nothing. */
async function keepPartitions(): Promise<void> {
  while (!stop.aborted) {
    try {
      const made = await ensurePartitions(db, clock.now());
      if (made.length > 0) log.info("partitions.made", { partitions: made });
    } catch (error) {
      log.warn("partitions.failed", errorFields(error));
    }
    await clock.sleep(HOUR_MS, stop);
  }
}
