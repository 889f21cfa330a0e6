import { afterAll, afterEach, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { isPresent, lacks } from "../../support/needs.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { credentialsOf, postForm } from "../../support/oauth.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { HEAD, Walk, type Task } from "../../support/dashboard/task-walk.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// Main tasks besides deliveries: keys, reviews, and the work of operators. Each task starts at the first page
// after the sign-in and uses only visible texts. SCREENSHOTS=<folder> saves each state.

const world = useWebhookDashboard({ retryDelaysMs: [600_000] });

describe.skipIf(lacks("chromium"))("a user with API keys, in a browser", () => {
  test("replaces the personal access token", async () => {
    const { body } = await world.api.call("POST", "/account/api-token", { token: world.token });
    const before = String(body["token"]);
    const task = {
      name: "Regenerate the token",
      clicks: 5,
      least: 5,
      reason:
        "a look at the token is audited, so that it is asked for; what uses it stops, so that it is confirmed",
    };
    await walkThrough(task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(go(page, "API Keys"));
      await walk.click(button(page, "Manage token"));
      await button(page, "Regenerate").waitFor();
      await walk.look("token");
      await walk.click(button(page, "Regenerate"));
      await walk.look("dialog");
      await walk.click(inDialog(page, "Regenerate"));
      await page.getByText("Token regenerated.").waitFor();
      await walk.click(button(page, "Copy"));
      walk.done();
      const statusOf = async (token: string) =>
        (await world.api.call("GET", "/verify-token", { token })).status;
      expect(await statusOf(before)).toBe(401);
      expect(await statusOf(await clipboard(page))).toBe(200);
    });
  });

  test("creates an OAuth client", async () => {
    const task = {
      name: "Create a client",
      clicks: 7,
      least: 6,
      reason: "its secret is shown once, so that it is copied, and that it is kept is said",
    };
    await walkThrough(task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(go(page, "API Keys"));
      await walk.click(button(page, "Create"));
      await walk.click(page.getByRole("menuitem", { name: /^OAuth client/ }));
      await page.locator("input:focus").waitFor();
      await walk.type("Back office");
      await walk.click(page.getByLabel("Redirect URIs"));
      await walk.type("https://office.example/callback");
      await walk.look("form");
      await walk.click(inDialog(page, "Create client"));
      await walk.click(inDialog(page, "Copy"));
      await walk.look("secret");
      const clientId = await page.getByRole("dialog").locator("code").innerText();
      const secret = await clipboard(page);
      await walk.click(inDialog(page, "I have stored it"));
      await page.getByRole("dialog").waitFor({ state: "detached" });
      walk.done();
      await walk.look("list");
      for (const menu of ["Actions for Back office", /^Account of/]) {
        await button(page, menu).click();
        await page.getByRole("menuitem").first().waitFor();
        await walk.look(`menu of ${menu === "Actions for Back office" ? "a client" : "the user"}`);
        await page.keyboard.press("Escape");
      }
      // The server checks the client's credentials before it looks up the code.
      const answer = await postForm(world.api, "/oauth/token", {
        grant_type: "refresh_token",
        refresh_token: "unknown",
        ...credentialsOf({ clientId, secret }),
      });
      expect(answer.body["error"]).toBe("invalid_grant");
    });
  });

  test("sees the reads of the signing secret in the audit log", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url, label: "CRM" });
    const { admin } = world.tenants.partners[0];
    const token = await world.api.login(admin.email);
    await world.api.call("POST", `/partner/webhooks/${id}/secret`, { token });
    const task = { name: "Who saw the secret", clicks: 4, least: 1 };
    await walkThrough(task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(go(page, "Audit log"));
      await walk.click(page.getByRole("combobox", { name: "Action" }));
      await walk.type("secret");
      await walk.look("filter");
      await page.getByRole("combobox", { name: "Action" }).focus();
      await walk.click(page.getByRole("option", { name: "Viewed a subscription's secret" }));
      const entries = page.getByRole("table", { name: "Entries, newest first" }).locator("tbody");
      const row = entries.getByRole("button", { name: /viewed a subscription's secret/ });
      await walk.click(row.first());
      await entries.getByText("WEBHOOK_SECRET_SHOWN").waitFor();
      walk.done();
      await walk.look("entry");
      const said = await entries.getByRole("row").first().innerText();
      expect(said).toContain(`Name of ${admin.email}`);
      expect(said).toContain(id);
    });
  });
});

describe.skipIf(lacks("chromium"))("an account, in a browser", () => {
  test("answers a review and flags it", async () => {
    await world.emit(1);
    const { owner: person } = world.tenants.partners[0].accounts[0];
    const task = {
      name: "Respond and flag",
      clicks: 5,
      least: 3,
      reason: "these are two things, each with a text; Tab saves two",
    };
    await walkThrough(task, { email: person.email, at: "Reviews" }, async (walk, page) => {
      const first = page.getByRole("link", { name: "Ada Reviewer" }).first();
      await first.waitFor();
      await walk.look("list");
      const id = Number((await first.getAttribute("href"))?.split("/").at(-1));
      await walk.click(first);
      await walk.click(page.getByLabel("Your response"));
      await walk.type("Thank you!");
      await walk.click(button(page, "Send response"));
      await button(page, "Change response").waitFor();
      await walk.click(page.getByLabel("Why should it be checked?"));
      await walk.type("Not a customer");
      await walk.look("typed");
      await walk.click(button(page, "Flag review"));
      await button(page, "Under review").waitFor();
      walk.done();
      await walk.look("flagged");
      const token = await world.api.login(person.email);
      const { body } = await world.api.call("GET", `/account/reviews/${id}`, { token });
      expect(body).toMatchObject({
        response: { body: "Thank you!" },
        flag: { status: "open", reason: "Not a customer" },
      });
    });
  });
});

describe.skipIf(lacks("chromium"))("an operator, in a browser", () => {
  const operator = (): Walker => ({ email: world.tenants.superAdmin.email, at: "Dispatcher" });

  test("finds the longest queue and its reason", async () => {
    await behind();
    const task = { name: "Backlog by subscription", clicks: 1, least: 0 };
    await walkThrough(task, operator(), async (walk, page) => {
      const row = page
        .getByRole("region", { name: "Backlog by subscription" })
        .getByRole("row")
        .filter({ hasText: "CRM" });
      await row.getByText("HTTP 503").waitFor();
      const said = await row.innerText();
      await walk.look("dispatcher");
      await walk.click(row.getByRole("link", { name: "CRM" }));
      await page.getByText("An event is blocking later events").waitFor();
      walk.done();
      await walk.look("subscription");
      expect(said).toMatch(/p1\s+3\s/);
    });
  });

  test("reads the pages of a partner that reports missing events", async () => {
    const id = await behind();
    const task = { name: "Assist a partner", clicks: 4, least: 2 };
    await walkThrough(task, operator(), async (walk, page) => {
      await walk.click(go(page, "Companies"));
      await walk.click(link(page, "p1"));
      await page.getByRole("link", { name: "Deliveries" }).waitFor();
      await walk.look("partner");
      await walk.click(link(page, "CRM"));
      await page.getByText("Viewing p1 (read-only)").waitFor();
      await walk.click(link(page, /^Event /));
      await page.getByText("HTTP 503").first().waitFor();
      walk.done();
      await walk.look("delivery");
      expect(page.url()).toContain(`/webhooks/${id}/deliveries/`);
    });
  });
});

const receiver = browserFixture(() => Receiver.start());

const lines: string[] = [];

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  console.log([HEAD, ...lines].join("\n"));
});

const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, ...(typeof name === "string" && { exact: true }) });

const inDialog = (page: Page, name: string) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true });

const link = (page: Page, name: string | RegExp) =>
  page.getByRole("link", { name, ...(typeof name === "string" && { exact: true }) });

const go = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true });

const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

const owner = () => world.tenants.partners[0].owner.email;

interface Walker {
  readonly email: string;
  /** The heading of the first page after the sign-in. */
  readonly at: string;
}

async function walkThrough(
  task: Task,
  { email, at }: Walker,
  steps: (walk: Walk, page: Page) => Promise<void>,
): Promise<void> {
  const { page, faults } = await world.open("", { email });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("heading", { level: 1, name: at, exact: true }).waitFor();
  const walk = new Walk(page, task);
  await steps(walk, page);
  lines.push(walk.line());
  expect(walk.faults).toEqual([]);
  expect(faults).toEqual([]);
  expect(walk.clicks).toBeLessThanOrEqual(task.clicks);
}

/** Creates a subscription with a failing endpoint and three events behind the failed one. */
async function behind(): Promise<string> {
  receiver.answer = () => 503;
  const { id } = await world.subscribe({ webhook_url: receiver.url, label: "CRM" });
  await world.emit(3);
  await until("the first attempt", () => receiver.received.length > 0);
  return id;
}
