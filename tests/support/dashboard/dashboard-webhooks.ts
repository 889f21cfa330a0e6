import { afterEach } from "bun:test";
import type { Page } from "playwright-core";

import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { builtDashboard } from "../../../src/dashboard/assets.ts";
import { addProvider, connectStore, created, report } from "../factory.ts";
import { startApi, type TestApi } from "../api.ts";
import { openBrowser } from "./chromium.ts";
import { isPresent } from "../needs.ts";
import { browserFixture } from "./browser.ts";
import { openSignedIn, type Look } from "./dashboard.ts";
import { createTestSchedule, startDispatcher } from "../dispatch.ts";
import { createDatabase, type TestDatabase } from "../postgres.ts";
import { addTenants, type Tenants } from "../tenants.ts";

/** The API and a dispatcher on the real clock, and a browser that shows the dashboard. */
export interface WebhookDashboard {
  readonly api: TestApi;
  readonly database: TestDatabase;
  readonly tenants: Tenants;
  /** The token of the first partner's owner. */
  readonly token: string;
  /** Opens a path of the dashboard, signed in as the owner or as the user of `email`. */
  open(
    path: string,
    look?: Look & { readonly email?: string },
  ): Promise<{ page: Page; faults: readonly string[] }>;
  closePages(): Promise<void>;
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
  stop(): Promise<void>;
}

interface Options {
  readonly retryDelaysMs?: readonly number[];
  readonly http?: Partial<HttpClientOptions>;
}

/** Starts a dashboard for the tests of a file, and closes its pages after each test. */
export function useWebhookDashboard(options?: Options): WebhookDashboard {
  const world = browserFixture(() => startWebhookDashboard(options));
  afterEach(async () => {
    if (isPresent("chromium")) await world.closePages();
  });
  return world;
}

async function startWebhookDashboard(options: Options = {}): Promise<WebhookDashboard> {
  const database = await createDatabase();
  const { db } = database;
  const tenants = await addTenants(db);
  const stores = await createTestSchedule();
  // The server closes a connection that waits longer than 30 seconds, and on a busy machine a build takes longer.
  await builtDashboard();
  let api = await startApi({ db, schedule: stores.schedule });
  const { box, config } = api.deps;
  const dispatcher = startDispatcher({ db, box, schedule: stores.schedule, ...options });
  const root = api.listen();
  const browser = await openBrowser();
  const [partner] = tenants.partners;
  const token = await api.login(partner.owner.email);
  const provider = await addProvider(db, box);
  const siteId = await connectStore(db, partner.accounts[0], { provider });
  const ask: WebhookDashboard["ask"] = (method, path, body) =>
    api.call(method, `/partner/webhooks${path}`, { token, body });
  const pages: Page[] = [];
  let reviews = 0;
  const clear = async () => {
    const { body } = await ask("GET", "");
    for (const { id } of body["data"] as { id: string }[]) await ask("DELETE", `/${id}`);
  };
  return {
    get api() {
      return api;
    },
    async stopApi() {
      await api.stop();
      return async () => {
        api = await startApi({ db, box, config, schedule: stores.schedule });
        api.listen(Number(new URL(root).port));
      };
    },
    database,
    tenants,
    token,
    ask,
    clear,
    async open(path, { email = partner.owner.email, ...look } = {}) {
      const opened = await openSignedIn(browser, { root, path, email, ...look });
      pages.push(opened.page);
      return opened;
    },
    async closePages() {
      for (const page of pages.splice(0)) await page.close();
    },
    async subscribe(fields) {
      await clear();
      const body = { label: "Test", delivery_kind: "immediate", ...fields };
      const made = await ask("POST", "", body);
      if (made.status !== 201) throw new Error(`The create was answered ${made.text}`);
      return { id: String(made.body["id"]), secret: String(made.body["secret"]) };
    },
    async emit(count) {
      for (let i = 0; i < count; i++)
        await report(api, provider, [created(siteId, `review-${++reviews}`)]);
    },
    async stop() {
      await browser.close();
      await api.stop();
      await dispatcher.stop();
      stores.close();
      await database.drop();
    },
  };
}
