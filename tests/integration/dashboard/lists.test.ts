import { beforeAll, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { isPresent, lacks } from "../../support/needs.ts";
import { allErrors } from "../../support/dashboard/dashboard.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { until } from "../../support/network/receiver.ts";

// Long lists render only the rows in view, and dates follow the user's locale.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("the audit log", () => {
  test("renders only the entries in view, and shows their number", async () => {
    const { page, faults } = await world.open("/audit");
    await entries(page).first().waitFor();
    await until("all of them", async () => {
      await page.evaluate("window.scrollTo(0, document.body.scrollHeight)");
      return (await page.getByRole("button", { name: "Show more" }).count()) === 0;
    });
    const text = await rowsLoaded(page).innerText();
    expect(Number(text.split(" ")[0])).toBeGreaterThanOrEqual(ENTRIES);
    expect(await entries(page).count()).toBeLessThan(60);
    await until("the last", async () => {
      await page.evaluate("window.scrollTo(0, document.body.scrollHeight)");
      const count = await page.getByRole("table").getAttribute("aria-rowcount");
      return count !== "-1" && count === (await entries(page).last().getAttribute("aria-rowindex"));
    });
    await page.evaluate("window.scrollTo(0, 0)");
    await until("the first", async () => {
      const first = await entries(page).first().getAttribute("aria-rowindex");
      return first === "2";
    });
    await entries(page).nth(3).getByRole("button").first().click();
    await entries(page).nth(3).getByText("Request").first().waitFor();
    expect(await allErrors(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("dates", () => {
  test.each([
    ["de-DE", "4. März 2026"],
    ["en-GB", "4 Mar 2026"],
    ["en-US", "Mar 4, 2026"],
  ])("are formatted for the locale %s", async (locale, date) => {
    const { page } = await world.open("/audit?until=2026-03-05T00:00:00Z", { locale });
    await entries(page).first().getByRole("button").first().click();
    await entries(page).first().getByText(date).first().waitFor();
  });
});

const ENTRIES = 300;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  const [{ id: companyId, owner }] = world.tenants.partners;
  await world.database.db.sql`
    insert into audit_log (at, action, actor_id, company_id, request_id, details)
    select '2026-03-04T12:00:00Z'::timestamptz + n * interval '1 second', 'WEBHOOK_TESTED', ${owner.id}::int,
           ${companyId}::int, 'list-' || n, '{}'
      from generate_series(1, ${ENTRIES}::int) n`;
});

const entries = (page: Page) =>
  page.getByRole("table", { name: "Entries, newest first" }).locator("tbody").getByRole("row");

const rowsLoaded = (page: Page) => page.getByRole("main").locator("output").last();
