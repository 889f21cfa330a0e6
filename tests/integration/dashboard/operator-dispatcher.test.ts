import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser, Page } from "playwright-core";

import { startApi, type TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { openSignedIn, seriousFaults } from "../../support/dashboard/dashboard.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import {
  addProvider,
  connectStore,
  created,
  report,
  type TestProvider,
} from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// The dispatcher page, with a real dispatcher that is started, blocked and stopped.

describe.skipIf(lacks("chromium"))("the dispatcher in a browser", () => {
  test("is shown live: missing, running, with a blocked head, with a disabled subscription, and recovered", async () => {
    const receiver = await Receiver.start(() => 500);
    const id = await subscribe(receiver.url, "CRM <b>bold</b>");
    const { page, faults } = await openOverview();
    await page.getByText("No dispatcher is running: nothing is delivered").waitFor();
    await page.getByText("Updates live", { exact: true }).waitFor();

    const dispatcher = start([600_000]);
    try {
      await page.getByText("No problems").waitFor();
      await panel(page, "Dispatchers").getByText("64 shards").waitFor();
      await emit(3);
      const blocked = panel(page, "Blocking events").getByRole("row").filter({ hasText: "p1" });
      await blocked.getByText("2 of 4").waitFor();
      expect(await blocked.innerText()).toContain("review_received");
      await blocked.getByTitle(id).waitFor();
      await page.getByText("1 event failed and will be retried.").waitFor();
      expect(await seriousFaults(page)).toEqual([]);
      const token = await api.login(tenants.partners[0].owner.email);
      await blocked.getByRole("button", { name: "Disable the subscription of p1" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Reason").fill("The endpoint answers with a sign-in page.");
      await dialog.getByRole("button", { name: "Disable", exact: true }).click();
      await page.getByText("Subscription disabled.").waitFor();
      const { body } = await api.call("GET", `/partner/webhooks/${id}`, { token });
      expect(body["disabled_note"]).toBe("The endpoint answers with a sign-in page.");
      const operated = `/admin/partners/${tenants.partners[0].id}/webhooks/${id}`;
      const operator = await api.login(tenants.superAdmin.email);
      await api.call("DELETE", `${operated}?reason=Done`, { token: operator });
      await page.getByText("No problems").waitFor();

      // A 410 is a permanent failure at once; the twentieth in a row disables the subscription.
      receiver.answer = () => 410;
      const gone = await subscribe(receiver.url, "Gone <b>bold</b>");
      await emit(20);
      const disabled = panel(page, "Disabled subscriptions").getByRole("row");
      await disabled.getByText("Gone <b>bold</b>").waitFor();
      expect(await disabled.last().innerText()).toContain("Too many consecutive failures (20)");
      await disabled.getByTitle(gone).waitFor();
      expect(await page.locator("#content b").count()).toBe(0);

      await page.getByText("Show as text").click();
      await page.getByText(/^Shard 63: dispatcher A, nothing queued$/).waitFor();
      await page.emulateMedia({ colorScheme: "dark" });
      await page.setViewportSize({ width: 360, height: 900 });
      await until("the page fits", async () =>
        Boolean(
          await page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
          ),
        ),
      );
      expect(await seriousFaults(page)).toEqual([]);
    } finally {
      await dispatcher.stop();
      await receiver.stop();
    }
    await page.getByText("No dispatcher is running: nothing is delivered").waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test("marks its state as old while the server is down, and recovers automatically", async () => {
    const { page } = await openOverview();
    await page.getByText("Updates live", { exact: true }).waitFor();
    const { masterKey } = api.deps.config;
    await api.stop();
    await page.getByText(/^Not live: data is \d+ s old\./).waitFor();
    // The last known state stays visible.
    await panel(page, "Shards").waitFor();
    api = await startApi({ db: database.db, schedule: redis.schedule, config: { masterKey } });
    expect(api.listen(Number(new URL(root).port))).toBe(root);
    await page.getByText("Updates live", { exact: true }).waitFor({ timeout: 60_000 });
    await page.close();
  });
});

const database = browserFixture(createDatabase);
const redis = browserFixture(createTestSchedule);
const tenants = browserFixture(() => addTenants(database.db));

let api: TestApi;

let root: string;

let browser: Browser;

let provider: TestProvider;

let siteId = 0;

let reviews = 0;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  api = await startApi({ db: database.db, schedule: redis.schedule });
  root = api.listen();
  provider = await addProvider(database.db, api.deps.box);
  const [account] = tenants.partners[0].accounts;
  siteId = await connectStore(database.db, account, { provider });
  browser = await openBrowser();
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
  await redis.flush();
});

async function subscribe(url: string, label: string): Promise<string> {
  const token = await api.login(tenants.partners[0].owner.email);
  const body = { label, webhook_url: url, delivery_kind: "immediate" };
  const made = await api.call("POST", "/partner/webhooks", { token, body });
  if (made.status !== 201) throw new Error(made.text);
  return String(made.body["id"]);
}

const emit = (count: number) =>
  report(
    api,
    provider,
    Array.from({ length: count }, () => created(siteId, `live-${++reviews}`)),
  );

const start = (retryDelaysMs: readonly number[]) => {
  const { db } = database;
  return startDispatcher({ db, box: api.deps.box, schedule: redis.schedule, retryDelaysMs });
};

const openOverview = () =>
  openSignedIn(browser, { root, path: "/dispatcher", email: tenants.superAdmin.email });

const panel = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
