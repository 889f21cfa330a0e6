import { describe, expect, test } from "bun:test";

import type { Locator, Page } from "playwright-core";

import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors, LOOKS } from "../../support/dashboard/dashboard.ts";
import { PAGES_KEPT } from "../../../src/dashboard/app/ui/pages.ts";
import { lacks } from "../../support/needs.ts";
import { until } from "../../support/network/receiver.ts";

// Long tables: one page of the API is rendered as a whole, longer tables only in view.

const world = useWebhookDashboard();

describe.skipIf(lacks("chromium"))("a table", () => {
  test(`is in the document with ${PAGE} rows, and with more only as far as it is in view`, async () => {
    const [{ id, owner, admin }] = world.tenants.partners;
    await addPeople(id, "partner_admin", PAGE - [owner, admin].length);
    const { page } = await world.open("/team");
    await page.getByText(`${PAGE} people`).waitFor();
    expect(await rows(page).count()).toBe(PAGE);
    await addPeople(id, "partner_admin", 1);
    await page.reload();
    await rows(page).first().waitFor();
    expect(await rows(page).count()).toBeLessThan(60);
    await until("all of them", async () => {
      await toEnd(page);
      return (await said(page).innerText()) === `${PAGE + 1} people`;
    });
    expect(await rows(page).count()).toBeLessThan(60);
  });

  test("shows the details of an entry in a long list", async () => {
    const [{ id, owner }] = world.tenants.partners;
    await world.database.db.sql`
      insert into audit_log (at, action, actor_id, company_id, request_id, details)
      select now() - n * interval '1 second', 'WEBHOOK_TESTED', ${owner.id}::int, ${id}::int, 'list-' || n, '{}'
        from generate_series(1, ${PAGE + 1}::int) n`;
    const { page } = await world.open("/audit");
    const row = rows(page).nth(3);
    await row.getByRole("button").first().click();
    await row.getByText("Request").first().waitFor();
    expect(await rows(page).count()).toBeLessThan(60);
    expect(await allErrors(page)).toEqual([]);
  });

  test("loads pages while scrolling, keeps its column widths, and reads evicted rows again", async () => {
    const [{ accounts }] = world.tenants.partners;
    await addPeople(accounts[0].owner.companyId, "account_user", MANY);
    const { page, faults } = await world.open("/users", {
      email: world.tenants.superAdmin.email,
    });
    await rows(page).first().waitFor();
    const columns = await columnsOf(page);
    // Emails are the longest values, so their column is the widest.
    expect(Math.max(...columns)).toBe(columns[0] ?? 0);
    const newest = await nameOf(rows(page).first());
    const firstPages: string[] = [];
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.endsWith("/admin/users") && !searchParams.has("cursor"))
        firstPages.push(pathname);
    });
    await until(
      "all of them",
      async () => {
        await toEnd(page);
        return /^1,\d\d\d users$/.test(await said(page).innerText());
      },
      PAGES_WITHIN_MS,
    );
    expect(await rows(page).count()).toBeLessThan(60);
    expect(await columnsOf(page)).toEqual(columns);
    await toEnd(page);
    const table = page.getByRole("table");
    await until("the last", async () => {
      await toEnd(page);
      return (
        (await rows(page).last().getAttribute("aria-rowindex")) ===
        (await table.getAttribute("aria-rowcount"))
      );
    });
    expect(firstPages).toEqual([]);
    await page.evaluate("window.scrollTo(0, 0)");
    await until("the first again", async () => (await nameOf(rows(page).first())) === newest);
    expect(firstPages).toHaveLength(1);
    expect(await columnsOf(page)).toEqual(columns);
    expect(faults).toEqual([]);
  });

  test.each([...LOOKS])("is navigable by keyboard at %p", async (look) => {
    const { page } = await world.open("/users", {
      ...look,
      email: world.tenants.superAdmin.email,
    });
    await rows(page).first().getByRole("link").first().focus();
    const visited = [await rowOfFocus(page)];
    for (let i = 0; i < 40; i++) {
      // Presses a key only after the row has loaded. A user is not faster than that, but a test is.
      const next = rows(page).and(page.locator(`[data-index="${(visited.at(-1) ?? 0) + 1}"]`));
      await until("the row after it", async () => (await next.count()) > 0);
      await page.keyboard.press("Tab");
      await until("the next row", async () => (await rowOfFocus(page)) >= 0);
      visited.push(await rowOfFocus(page));
    }
    expect(visited).toEqual(visited.toSorted((a, b) => a - b));
    expect(new Set(visited).size).toBeGreaterThan(18);
    expect(await page.evaluate("window.scrollY")).toBeGreaterThan(0);
    expect(await allErrors(page)).toEqual([]);
  });
});

const PAGE = 100;

/** More rows than a list keeps in memory. */
const MANY = (PAGES_KEPT + 2) * PAGE;

const addPeople = (company: number, role: string, count: number) =>
  world.database.db.sql`
    insert into users (company_id, email, name, role, created_at, updated_at)
    select ${company}::int, n || '.' || gen_random_uuid() || '@people.example', 'Somebody ' || n, ${role}, now(), now()
      from generate_series(1, ${count}::int) n`;

/** Enough for 18 pages on a machine that is busy with other tests. */
const PAGES_WITHIN_MS = 150_000;

const rows = (page: Page) => page.locator("tbody").getByRole("row");

/** The first cell only, because the times in a row change. */
const nameOf = (row: Locator) => row.locator("td").first().innerText();

const said = (page: Page) => page.getByRole("main").locator("output").last();

const toEnd = (page: Page) => page.evaluate("window.scrollTo(0, document.body.scrollHeight)");

const columnsOf = (page: Page): Promise<number[]> =>
  page.evaluate("[...document.querySelectorAll('th')].map((one) => one.offsetWidth)");

const rowOfFocus = (page: Page): Promise<number> =>
  page.evaluate("Number(document.activeElement.closest('tr')?.dataset.index ?? -1)");
