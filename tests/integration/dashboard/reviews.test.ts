import { beforeAll, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { heading } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import {
  addProvider,
  connectStore,
  created,
  providerEvent,
  report,
  reviewIdOf,
  type TestProvider,
} from "../../support/factory.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { until } from "../../support/network/receiver.ts";
import type { TestAccount } from "../../support/tenants.ts";

// The pages of account users: reviews, one review, review sites.

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the reviews in a browser", () => {
  test("an account user responds, edits, deletes, flags, assigns and notes, and the history shows it", async () => {
    const id = await addReview({ reviewer: "Maria" });
    const { page, faults } = await visit(`/reviews/${id}`, account.user.email);
    await heading(page, "Review by Maria").waitFor();
    await said(page, "p1-a1 east · Name of google");
    await page.getByLabel("Your response").fill("Thank you!");
    await page.getByRole("button", { name: "Send response" }).click();
    await page.getByRole("button", { name: "Change response" }).click();
    await page.getByLabel("Your response").fill("Thank you, Maria!");
    await page.getByRole("button", { name: "Save response" }).click();
    await page.getByRole("button", { name: "Delete response" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Send response" }).waitFor();

    await page.getByLabel("Why should it be checked?").fill("Not a customer");
    await page.getByRole("button", { name: "Flag review" }).click();
    await page.getByRole("button", { name: "Under review" }).click();
    await page.getByRole("button", { name: "Rejected" }).click();
    await page.getByRole("dialog").getByText("you cannot undo it").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Record" }).click();
    // A closed flag has no transitions, but the review may be flagged again.
    await page.getByLabel("Reason for flagging it again").waitFor();
    expect(await page.getByRole("button", { name: "Accepted" }).count()).toBe(0);

    await page.getByRole("combobox", { name: "Assigned to" }).click();
    await page.getByRole("option", { name: /^Name of owner@p1-a1/ }).click();
    await page.getByLabel("Add a note").fill("Call her on Friday.");
    await page.getByRole("button", { name: "Add note" }).click();
    await history(page).getByText("Call her on Friday.").waitFor();
    const told = await history(page).getByRole("listitem").allInnerTexts();
    const me = `Name of ${account.user.email}`;
    expect(told.map((one) => one.replace(/ · .*/, "").split("\n")[0])).toEqual([
      `${me} added a note`,
      `${me} assigned the review to Name of ${account.owner.email}`,
      `${me} set the flag to “Rejected”`,
      `${me} set the flag to “Under review”`,
      `${me} flagged the review`,
      `${me} deleted the response`,
      `${me} changed the response`,
      `${me} responded`,
      "Name of google published the review",
    ]);
    expect(faults).toEqual([]);
  });

  test("by keyboard alone a review is found, opened and answered", async () => {
    await addReview({ reviewer: "Keyboard Karl", rate: 2 });
    const { page, faults } = await visit("/reviews", account.owner.email);
    await page.getByRole("link", { name: "Keyboard Karl", exact: true }).waitFor();
    const tabTo = async (label: string) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate(
          `(() => { const one = document.activeElement; return [...(one.labels ?? [])].map((l) => l.textContent).join() || one.getAttribute("aria-label") || one.textContent; })()`,
        );
        if (String(focused).startsWith(label)) return;
      }
      throw new Error(`The focus does not reach ${label}.`);
    };
    await tabTo("Filters");
    await page.keyboard.press("Enter");
    await tabTo("Stars");
    await page.keyboard.type("2 of 5");
    await page.waitForURL("**/reviews?rate=2");
    await tabTo("Keyboard Karl");
    await page.keyboard.press("Enter");
    await heading(page, "Review by Keyboard Karl").waitFor();
    // The heading has the focus, so that a screen reader announces the page.
    expect(await page.evaluate("document.activeElement.textContent")).toBe(
      "Review by Keyboard Karl",
    );
    await tabTo("Your response");
    await page.keyboard.type("We are sorry.");
    await tabTo("Send response");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Change response" }).waitFor();
    // The form is gone, and the focus stays nearby: the next Tab continues from here.
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Change response");
    expect(faults).toEqual([]);
  });

  test("the list is filtered through its address, and goes on page by page", async () => {
    const flagged = await addReview({ reviewer: "Flagged Fred", rate: 1 });
    const token = await world.api.login(account.owner.email);
    const reason = "Spam";
    await world.api.call("POST", `/account/reviews/${flagged}/flag`, { token, body: { reason } });
    const events = Array.from({ length: 105 }, () => created(sites.west, `dashboard-${++reviews}`));
    await report(world.api, google, events);
    const { page } = await visit("/reviews?flag=open", account.owner.email);
    await page.getByRole("link", { name: "Flagged Fred", exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "Ada Reviewer", exact: true }).count()).toBe(0);
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.getByText("100 reviews so far").waitFor();
    // The oldest row is rendered only when it is in view.
    const scrolledTo = (name: string) =>
      until(name, async () => {
        await page.evaluate("window.scrollTo(0, document.body.scrollHeight)");
        return (await page.getByRole("link", { name }).count()) > 0;
      });
    await scrolledTo("Flagged Fred");
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
    await page.getByLabel("Store").selectOption({ label: "p1-a1 west" });
    await page.waitForURL("**/reviews?store=*");
    await page
      .getByRole("link", { name: "Flagged Fred", exact: true })
      .waitFor({ state: "detached" });
    await page.getByLabel("Stars").selectOption("1");
    await page.getByRole("heading", { name: "No review matches" }).waitFor();
    await page.getByRole("button", { name: "Clear filters" }).last().click();
    await page.getByRole("textbox", { name: "Text" }).fill("flagged f");
    await page.waitForURL("**/reviews?q=flagged+f");
    await page.getByText("1 review", { exact: true }).waitFor();
    await page.locator("mark", { hasText: "Flagged F" }).waitFor();
    await page.getByRole("link", { name: "Respond to Flagged Fred" }).click();
    // The text field has the focus after "Respond".
    await page.locator("textarea:focus").fill("Sorry, Fred.");
    await page.getByRole("button", { name: "Send response" }).click();
    await page.getByText("Sorry, Fred.").first().waitFor();
    await page.getByRole("link", { name: "Reviews", exact: true }).first().click();
    await page.getByRole("textbox", { name: "Text" }).fill("sorry, f");
    await page.locator("mark", { hasText: "Sorry, F" }).waitFor();
    await page.getByRole("textbox", { name: "Text" }).fill("nobody wrote this");
    await page.getByRole("heading", { name: "No review matches" }).waitFor();
    await page.getByRole("button", { name: "Clear filters" }).last().click();
    await scrolledTo("Flagged Fred");
    expect(new URL(page.url()).search).toBe("");
  });

  test("a conflict with a colleague is explained, and a removed review is read-only", async () => {
    const id = await addReview();
    const external = `dashboard-${reviews}`;
    const { page } = await visit(`/reviews/${id}`, account.user.email);
    await page.getByLabel("Why should it be checked?").fill("Mine");
    const token = await world.api.login(account.owner.email);
    await world.api.call("POST", `/account/reviews/${id}/flag`, {
      token,
      body: { reason: "Theirs" },
    });
    await page.getByRole("button", { name: "Flag review" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("The review already has an open flag.").waitFor();
    expect(await alert.innerText()).toContain("A colleague flagged the review.");
    expect(await page.getByLabel("Why should it be checked?").inputValue()).toBe("Mine");
    await remove(external);
    await page.getByLabel("Add a note").fill("Gone?");
    await page.getByRole("button", { name: "Add note" }).click();
    await page.getByText("Name of google removed this review").waitFor();
    await page.getByText("The review was removed before anyone responded.").waitFor();
    expect(await page.getByLabel("Your response").count()).toBe(0);
  });

  test("a location user sees its own store only, and other stores are not disclosed", async () => {
    const own = await addReview({ reviewer: "Own Olga" });
    const foreign = await addReview({ reviewer: "Foreign Fritz" }, sites.west);
    const { page } = await visit("/reviews", account.locationUser.email);
    await page.getByRole("link", { name: "Own Olga", exact: true }).waitFor();
    expect(await page.getByText("Foreign Fritz").count()).toBe(0);
    const stores = page.getByLabel("Store").locator("option");
    // The options come with a separate request.
    await stores.nth(1).waitFor({ state: "attached" });
    expect(await stores.allInnerTexts()).toEqual(["Every store", "p1-a1 east"]);
    await page.getByRole("link", { name: "Review sites" }).click();
    await page.getByRole("region", { name: "p1-a1 east" }).waitFor();
    expect(await page.getByRole("region", { name: "p1-a1 west" }).count()).toBe(0);
    await page.close();

    const stranger = await visit(`/reviews/${foreign}`, account.locationUser.email);
    await heading(stranger.page, "Page not found").waitFor();
    await stranger.page.close();
    const colleague = await visit(`/reviews/${own}`, account.locationUser.email);
    await heading(colleague.page, "Review by Own Olga").waitFor();
    await colleague.page.close();
  });

  test("review sites show broken connections first, with start, reason and next step", async () => {
    await disconnect(sites.west, "post", "E-007");
    const { page, faults } = await visit("/sites", account.owner.email);
    await page.getByText("1 of 2 connections needs attention").waitFor();
    const stores = await page.getByRole("region").allInnerTexts();
    expect(stores.map((one) => one.split("\n")[0])).toEqual(["p1-a1 west", "p1-a1 east"]);
    const [west = ""] = stores;
    for (const part of [
      "Disconnected",
      "since Jun 1, 2026",
      "asks for two-factor authentication",
      "Confirm the sign-in",
      "(E-007)",
    ])
      expect(west).toContain(part);
    await checkLooks(page, "broken connection");
    await page.getByRole("button", { name: "Show only these" }).click();
    await page.getByRole("region", { name: "p1-a1 east" }).waitFor({ state: "detached" });
    await disconnect(sites.west, "post", null);
    await page.getByRole("link", { name: "Reviews", exact: true }).click();
    await heading(page, "Reviews").waitFor();
    await page.getByRole("link", { name: "Review sites" }).click();
    await page.getByText("All 2 connections work").waitFor();
    expect(faults).toEqual([]);
  });
});

let account: TestAccount;

let google: TestProvider;

const sites = { east: 0, west: 0 };

let reviews = 0;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  [account] = world.tenants.partners[0].accounts;
  google = await addProvider(world.database.db, world.api.deps.box);
  sites.east = await connectStore(world.database.db, account, { provider: google });
  sites.west = await connectStore(world.database.db, account, { provider: google, store: 1 });
});

async function addReview(fields: Record<string, unknown> = {}, site = sites.east): Promise<number> {
  const external = `dashboard-${++reviews}`;
  await report(world.api, google, [created(site, external, fields)]);
  return reviewIdOf(world.database.db, external);
}

const remove = (external: string) =>
  report(world.api, google, [
    providerEvent("review.removed", sites.east, { review: { external_review_id: external } }),
  ]);

const disconnect = (site: number, axis: "pull" | "post", code: string | null) =>
  report(world.api, google, [
    providerEvent("connection.changed", site, { axis, connected: code === null, error_code: code }),
  ]);

/** Signs in and opens a page. */
async function visit(path: string, email: string, look = {}) {
  return world.open(path, { email, ...look });
}

const history = (page: Page) => page.getByRole("list", { name: "History, latest first" });

const said = async (page: Page, text: string) => {
  await page.getByText(text, { exact: true }).first().waitFor();
};
