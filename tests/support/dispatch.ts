import { createDeliver, type Deliver } from "../../dispatcher/delivery/deliver.ts";
import type { Limits } from "../../dispatcher/delivery/limits.ts";
import { Dispatcher } from "../../dispatcher/dispatcher.ts";
import { HttpClient } from "../../dispatcher/http/client.ts";
import type { HttpClientOptions } from "../../dispatcher/http/pool.ts";
import { createLeases } from "../../dispatcher/shards/lease-queries.ts";
import { PostgresClock } from "../../src/lib/postgres-clock.ts";
import { MAIL_RETRY_DELAYS_MS } from "../../dispatcher/mail/decide.ts";
import { Mailer } from "../../dispatcher/mail/mailer.ts";
import { createMailStore } from "../../dispatcher/mail/queries.ts";
import type { MailTransport } from "../../dispatcher/mail/transport.ts";
import { createStore, type DispatchStore } from "../../dispatcher/store/store.ts";
import { createUlids } from "../../dispatcher/store/ulids.ts";
import type { RawDb } from "../../db/client.ts";
import { systemClock, type Clock } from "../../src/lib/clock.ts";
import { parseNetworks } from "../../src/lib/egress.ts";
import type { Log } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSecretBox, type SecretBox } from "../../src/lib/secrets.ts";
import { createSchedule, type Schedule } from "../../src/outbox/schedule.ts";

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Connects a schedule to the real Redis, under a random key prefix, because test files share the server. */
export async function createTestSchedule(): Promise<{
  prefix: string;
  schedule: Schedule;
  flush(): Promise<void>;
  close(): void;
}> {
  const url = process.env["TEST_REDIS_URL"];
  if (url === undefined)
    throw new Error("TEST_REDIS_URL is not set: run the tests with scripts/test.ts.");
  const redis = await connectRedis(url, silentLog);
  const prefix = `test-${crypto.randomUUID()}:`;
  return {
    prefix,
    schedule: createSchedule(redis, prefix, silentLog),
    async flush() {
      // A FLUSHALL would delete the keys of other test files, which use the same server.
      const keys = await redis.keys(`${prefix}*`);
      if (keys.length > 0) await redis.del(...keys);
    },
    close: () => redis.disconnect(),
  };
}

export interface RunningDispatcher {
  readonly client: HttpClient;
  readonly workload: Dispatcher["workload"];
  /** Finishes the POSTs under way and stops, as SIGTERM makes a process do. */
  stop(): Promise<void>;
}

export function createTestBox(): SecretBox {
  return createSecretBox({ current: crypto.getRandomValues(new Uint8Array(32)) });
}

/** Runs the whole dispatcher in this process over real stores. Its retry delays are short, so that tests end soon. */
export function startDispatcher(deps: {
  db: RawDb;
  box: SecretBox;
  schedule: Schedule;
  retryDelaysMs?: readonly number[];
  timeoutMs?: number;
  /** Overrides of the HTTP client: limits, DNS lookup, certificates or egress policy. */
  http?: Partial<HttpClientOptions>;
  batchHourMs?: number;
  mailTransport?: MailTransport;
  log?: Log;
  wrap?: (deliver: Deliver) => Deliver;
  wrapStore?: (store: DispatchStore) => DispatchStore;
  limits?: Limits;
  /** The clock of the dispatcher; the system clock by default. */
  clock?: Clock;
}): RunningDispatcher {
  const log = deps.log ?? silentLog;
  const given = deps.clock ?? systemClock;
  const clock = given instanceof PostgresClock ? given : new PostgresClock(given);
  const client = new HttpClient({
    policy: { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") },
    timeoutMs: deps.timeoutMs ?? 60_000,
    ...deps.http,
  });
  const deliver = createDeliver({ clock, client });
  const store = createStore({
    db: deps.db,
    clock,
    box: deps.box,
    log,
    config: { batchHourMs: deps.batchHourMs ?? 3_600_000 },
  });
  const dispatcher = new Dispatcher({
    clock,
    log,
    schedule: deps.schedule,
    leases: createLeases(deps.db, deps.db),
    store: deps.wrapStore?.(store) ?? store,
    deliver: deps.wrap?.(deliver) ?? deliver,
    retryDelaysMs: deps.retryDelaysMs ?? [50, 100, 150],
    mailer:
      deps.mailTransport &&
      new Mailer({
        clock,
        log,
        box: deps.box,
        store: createMailStore(deps.db),
        transport: deps.mailTransport,
        retryDelaysMs: MAIL_RETRY_DELAYS_MS,
      }),
    newUlid: createUlids(),
    ...(deps.limits && { limits: deps.limits }),
  });
  const stop = new AbortController();
  const running = dispatcher.run(stop.signal);
  return {
    client,
    get workload() {
      return dispatcher.workload;
    },
    async stop() {
      stop.abort();
      await running;
      client.close();
    },
  };
}
