import { checksJob } from "../../../dispatcher/delivery/check.ts";
import { Reach } from "../../../dispatcher/delivery/reach.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { createUlids } from "../../../dispatcher/store/ulids.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { startApi, type TestApi } from "../api.ts";
import { createTestSchedule, silentLog, startDispatcher } from "../dispatch.ts";
import { addProvider, connectStore, created, report } from "../factory.ts";
import { LOOPBACK } from "../network/direct-deliveries.ts";
import { type Receiver, until } from "../network/receiver.ts";
import { createDatabase } from "../postgres.ts";
import { addTenants } from "../tenants.ts";
import { browserFixture } from "./browser.ts";
import { openBrowser } from "./chromium.ts";
import { serveDashboard } from "./dashboard.ts";
import { closingPages, type Dashboard, visitsOf } from "./use-dashboard.ts";

/** A dashboard with a dispatcher on the real clock, and a provider that reports reviews of the first partner. */
export interface WebhookDashboard extends Dashboard {
  /** The token of the first partner's owner. */
  readonly token: string;
  /** Starts the dispatcher. Answers a function that stops it. */
  startDispatcher(): () => Promise<void>;
  /** Stops the API while the dispatcher continues. Answers a function that starts a new API at the same address. */
  stopApi(): Promise<() => Promise<void>>;
  /** Sends a request below `/partner/webhooks` as the owner. */
  ask(method: string, path: string, body?: unknown): ReturnType<TestApi["call"]>;
  /** Creates a subscription after deleting all others of the partner. */
  subscribe(fields: Readonly<Record<string, unknown>>): Promise<{ id: string; secret: string }>;
  /** Deletes all subscriptions of the partner. */
  clear(): Promise<void>;
  /** Reports `count` new reviews of the first partner. */
  emit(count: number): Promise<void>;
  /** Waits until a subscription has at least `count` attempts, at most 100. */
  settled(id: string, count: number): Promise<void>;
  /** Creates the subscription "Production", which 20 failures disable and which then holds two events. */
  disabled(receiver: Receiver): Promise<string>;
}

interface Options {
  readonly retryDelaysMs?: readonly number[];
  readonly http?: Partial<HttpClientOptions>;
  /** Whether the dispatcher runs from the beginning, which is the default. */
  readonly isDispatching?: boolean;
}

/** Starts a dashboard for the tests of a file, and closes its pages after each test. */
export function useWebhookDashboard(options: Options = {}): WebhookDashboard {
  return closingPages(browserFixture(() => startWebhookDashboard(options)));
}

/** Makes the checks of endpoints that are pending now, and waits for their end. */
export async function runChecks({ api, database }: WebhookDashboard): Promise<void> {
  const { box } = api.deps;
  const shared = { db: database.db, box, clock: systemClock, log: silentLog, reach: new Reach() };
  const openClient = () => new HttpClient({ policy: LOOPBACK, maxIdle: 0 });
  const made = { ...shared, openClient, newUlid: createUlids() };
  const job = checksJob(made, new AbortController().signal);
  await until("a check", async () => (await job.run({ reached: "" })).rows > 0);
  await job.drain?.();
}

async function startWebhookDashboard(options: Options): Promise<WebhookDashboard> {
  const { isDispatching = true, ...dispatching } = options;
  const database = await createDatabase();
  const { db } = database;
  const tenants = await addTenants(db);
  const stores = await createTestSchedule();
  const { schedule } = stores;
  const served = await serveDashboard({ db, schedule });
  const { root } = served;
  let { api } = served;
  const { box, config } = api.deps;
  let dispatcher: ReturnType<typeof startDispatcher> | undefined;
  const stopDispatcher = async () => {
    await dispatcher?.stop();
    dispatcher = undefined;
  };
  const start = () => {
    dispatcher = startDispatcher({ db, box, schedule, ...dispatching });
    return stopDispatcher;
  };
  if (isDispatching) start();
  const browser = await openBrowser();
  const [partner] = tenants.partners;
  const token = await api.login(partner.owner.email);
  const provider = await addProvider(db, box);
  const siteId = await connectStore(db, partner.accounts[0], { provider });
  const ask: WebhookDashboard["ask"] = (method, path, body) =>
    api.call(method, `/partner/webhooks${path}`, { token, body });
  let reviews = 0;
  const clear = async () => {
    const { body } = await ask("GET", "");
    for (const { id } of body["data"] as { id: string }[]) await ask("DELETE", `/${id}`);
  };
  const emit = async (count: number) => {
    for (let i = 0; i < count; i++)
      await report(api, provider, [created(siteId, `review-${++reviews}`)]);
  };
  const subscribe: WebhookDashboard["subscribe"] = async (fields) => {
    await clear();
    const body = { label: "Test", delivery_kind: "immediate", ...fields };
    const made = await ask("POST", "", body);
    if (made.status !== 201) throw new Error(`The create was answered ${made.text}`);
    return { id: String(made.body["id"]), secret: String(made.body["secret"]) };
  };
  return {
    get api() {
      return api;
    },
    root,
    browser,
    database,
    tenants,
    token,
    ...visitsOf(browser, root, partner.owner.email),
    startDispatcher: start,
    async stopApi() {
      await api.stop();
      return async () => {
        api = await startApi({ db, box, config, schedule });
        api.listen(Number(new URL(root).port));
      };
    },
    ask,
    clear,
    subscribe,
    emit,
    settled: (id, count) =>
      until(`${count} attempts`, async () => {
        const { body } = await ask("GET", `/${id}/deliveries?limit=100`);
        return (body["data"] as unknown[]).length >= count;
      }),
    async disabled(receiver) {
      const { id } = await subscribe({ webhook_url: receiver.url, label: "Production" });
      receiver.answer = () => 410;
      await emit(20);
      await until("disabled", async () => (await ask("GET", `/${id}`)).body["is_active"] === false);
      await emit(2);
      receiver.answer = () => 200;
      receiver.received.length = 0;
      return id;
    },
    async stop() {
      await browser.close();
      await api.stop();
      await stopDispatcher();
      stores.close();
      await database.drop();
    },
  };
}
