import { afterEach, describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { allErrors } from "../../support/dashboard/dashboard.ts";
import {
  button,
  clipboard,
  heading,
  inDialog,
  navigation,
  rowOf,
} from "../../support/dashboard/locators.ts";
import { type Walker, walkThrough } from "../../support/dashboard/task-walk.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { credentialsOf, postForm } from "../../support/oauth.ts";

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
    };
    await walkThrough(world, task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(area(page, "API Keys"));
      await walk.click(button(page, "Manage token"));
      await button(page, "Regenerate").waitFor();
      await walk.look("token");
      await walk.click(button(page, "Regenerate"));
      await walk.look("dialog");
      await walk.click(inDialog(page, "Regenerate"));
      await page.getByText("Token regenerated.").waitFor();
      await walk.click(button(page, "Copy"));
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
    };
    await walkThrough(world, task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(area(page, "API Keys"));
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
    const task = { name: "Who saw the secret", clicks: 4 };
    await walkThrough(world, task, { email: owner(), at: "Webhooks" }, async (walk, page) => {
      await walk.click(area(page, "Audit log"));
      await walk.click(page.getByRole("combobox", { name: "Action" }));
      await walk.type("secret");
      await walk.look("filter");
      // The looks have closed the list.
      await page.getByRole("combobox", { name: "Action" }).click();
      await walk.click(page.getByRole("option", { name: "Viewed the secret of a subscription" }));
      const entries = page.getByRole("table", { name: "Entries, newest first" }).locator("tbody");
      const row = entries.getByRole("button", {
        name: /viewed the secret of the subscription CRM/,
      });
      await walk.click(row.first());
      await entries.getByText("Viewed the secret of a subscription").waitFor();
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
    };
    await walkThrough(world, task, { email: person.email, at: "Reviews" }, async (walk, page) => {
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
    const task = { name: "Backlog by subscription", clicks: 1 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      const region = page.getByRole("region", { name: "Backlog by subscription" });
      const row = rowOf(region, "CRM");
      await row.getByText("HTTP 503").waitFor();
      const said = await row.innerText();
      await walk.look("dispatcher");
      await walk.click(row.getByRole("link", { name: "CRM" }));
      await page.getByText("An event is blocking later events").waitFor();
      await walk.look("subscription");
      expect(said).toMatch(/p1\s+3\s/);
      expect(said).toMatch(/Retry/);
      await page.getByText("Updates live", { exact: true }).waitFor();
      await page.goBack();
      await region.getByText("Longest wait").click();
      await page.waitForURL(/order=age/);
      // The rows of the previous order are dimmed until those of the new order have loaded.
      await region.locator('[aria-busy="true"]').waitFor({ state: "detached" });
      expect(await allErrors(page)).toEqual([]);
    });
  });

  test("reads the pages of a partner that reports missing events", async () => {
    const id = await behind();
    const task = { name: "Assist a partner", clicks: 4 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      await walk.click(area(page, "Companies"));
      await walk.click(link(page, "Webhooks of p1"));
      await page.getByRole("link", { name: "Deliveries" }).waitFor();
      await walk.look("partner");
      await walk.click(link(page, "CRM"));
      await page.getByText("Viewing p1.").waitFor();
      await walk.click(link(page, /^Event /));
      await page.getByText("HTTP 503").first().waitFor();
      await walk.look("delivery");
      expect(new URL(page.url()).pathname).toStartWith(
        `/dashboard/companies/${world.tenants.partners[0].id}/webhooks/${id}/deliveries/`,
      );
      await link(page, /^Deliveries of/).click();
      await page.waitForURL(/tab=deliveries/);
      await button(page, "Act as partner").click();
      await inDialog(page, "Create link").click();
      const portal = page.getByRole("dialog").getByRole("link", { name: "Open portal" });
      expect(await portal.getAttribute("href")).toContain("/embed/");
      await page.keyboard.press("Escape");
      await link(page, "Back to p1").click();
      await heading(page, "p1").waitFor();
    });
  });

  test("creates a service with a token", async () => {
    const task = { name: "Create a service", clicks: 8 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      await walk.click(area(page, "Services"));
      await walk.look("empty");
      await walk.click(button(page, "New service").first());
      await focused(page);
      await walk.type("Reviews engine");
      await walk.click(page.getByRole("checkbox", { name: "Record actions" }));
      await walk.look("form");
      await walk.click(inDialog(page, "Create service"));
      await heading(page, "Reviews engine").waitFor();
      await walk.look("service");
      await walk.click(button(page, "New token"));
      await focused(page);
      await walk.type("Production");
      await walk.look("token form");
      await walk.click(inDialog(page, "Create token"));
      await walk.click(inDialog(page, "Copy"));
      await walk.look("token");
      const token = await clipboard(page);
      await walk.click(inDialog(page, "I have stored it"));
      await rowOf(page, "Production").waitFor();
      await walk.look("tokens");
      // The token is accepted, unlike the body.
      const { status } = await world.api.call("POST", "/platform/actions", { token, body: {} });
      expect(status).toBe(422);
      await button(page, "Delete Reviews engine").click();
      await walk.look("delete");
      await inDialog(page, "Delete service").click();
      await heading(page, "Services").waitFor();
      const ended = await world.api.call("POST", "/platform/actions", { token, body: {} });
      expect(ended.status).toBe(401);
    });
  });

  test("sees why an action of the inbox was rejected, and takes it again", async () => {
    const { sql } = world.database.db;
    await rejected("assign-1");
    const task = { name: "Look into the inbox", clicks: 2 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      await walk.click(area(page, "Inbox"));
      const row = rowOf(page, "assign-1");
      await row.getByText("is required").waitFor();
      await row.getByRole("link", { name: "Writer" }).waitFor();
      await walk.look("inbox");
      await walk.click(button(row, "Retry action assign-1"));
      await page.getByText("Action sent again.").waitFor();
      await page.getByText("No rejected action").first().waitFor();
      const [{ state } = { state: "none" }] = await sql<{ state: string }[]>`
        select state from inbox`;
      expect(state).toBe("waiting");
      await sql`update inbox set state = 'rejected', errors = '{"review_id": "is required"}'`;
      await row.getByText("Retried once").waitFor();
      await page.getByRole("checkbox", { name: "Select all 1 shown" }).click();
      await walk.look("selected");
      await button(page, "Retry 1 action").click();
      await page.getByText("1 action sent again.").waitFor();
      await page.getByRole("tab", { name: "Waiting (1)" }).click();
      await button(row, "Delete action assign-1").click();
      await walk.look("delete");
      await inDialog(page, "Delete action").click();
      await page.getByText("No waiting action").waitFor();
    });
  });

  test("retries the other actions of a selection after one was refused", async () => {
    await rejected("refused", "retried", "removed");
    const { page } = await world.open("/inbox", { email: operator().email });
    let answers = [503, 404];
    await page.route("**/admin/inbox/*/retry", (route) => {
      const [status, ...rest] = answers;
      answers = rest;
      return status === undefined ? route.continue() : route.fulfill({ status, json: {} });
    });
    await page.getByRole("checkbox", { name: "Select all 3 shown" }).click();
    await button(page, "Retry 3 actions").click();
    await page.getByRole("alert").waitFor();
    await page.getByRole("tab", { name: "Rejected (2)" }).waitFor();
  });

  test("edits a user", async () => {
    const { admin } = world.tenants.partners[0];
    const name = `Name of ${admin.email}`;
    const task = { name: "Edit a user", clicks: 4 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      await walk.click(area(page, "Users"));
      await walk.click(link(page, name));
      await heading(page, name).waitFor();
      await walk.look("user");
      await walk.click(button(page, "Edit"));
      await focused(page);
      await page.keyboard.press("Control+a");
      await walk.type("Ada Admin");
      await walk.look("form");
      await walk.click(inDialog(page, "Save"));
      await heading(page, "Ada Admin").waitFor();
    });
    await world.database.db.sql`update users set name = ${name} where id = ${admin.id}`;
  });

  test("finds a subscription by its id", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url, label: "CRM" });
    const task = { name: "Find a subscription by its id", clicks: 1 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      const { pathname } = new URL(
        `${world.root}/dashboard/companies/${world.tenants.partners[0].id}/webhooks/${id}`,
      );
      await walk.click(button(page, /^Search/));
      await focused(page);
      await page.evaluate(`navigator.clipboard.writeText("${id}")`);
      await page.keyboard.press("Control+v");
      await page.waitForURL(`**${pathname}`);
      await page.keyboard.press("Control+k");
      await focused(page);
      // A typed text lists what it finds.
      await walk.type("p1");
      await page.getByRole("option", { name: /^p1-a1 Account/ }).waitFor();
      await walk.look("found");
    });
  });

  test("erases a reviewer", async () => {
    await world.emit(1);
    const { sql } = world.database.db;
    await sql`update reviews set reviewer_email = 'ada@mail.example'`;
    const task = { name: "Erase a person", clicks: 4 };
    await walkThrough(world, task, operator(), async (walk, page) => {
      await walk.click(area(page, "Erasures"));
      await walk.look("empty");
      await walk.click(button(page, "Erase a person").first());
      await focused(page);
      await walk.type("ada@mail.example");
      await walk.look("form");
      await walk.click(page.getByLabel(/cannot be undone/));
      await walk.click(inDialog(page, "Erase"));
      await rowOf(page, "A reviewer").getByText("Queued").waitFor();
      await walk.look("list");
      const [erasure] = await sql`select kind, state from erasures`;
      expect(erasure).toEqual({ kind: "reviewer", state: "queued" });
    });
  });
});

const receiver = browserFixture(() => Receiver.start());

afterEach(async () => {
  if (!isPresent("chromium")) return;
  receiver.answer = () => 200;
  receiver.received.length = 0;
});

const link = (page: Page, name: string | RegExp) =>
  page.getByRole("link", { name, ...(typeof name === "string" && { exact: true }) });

/** Waits until the field of a dialog has the focus. */
const focused = (page: Page) => page.getByRole("dialog").locator("input:focus").waitFor();

/** Finds the link of a page in the main navigation. */
const area = (page: Page, name: string) =>
  navigation(page).getByRole("link", { name, exact: true });

const owner = () => world.tenants.partners[0].owner.email;

/** Creates a subscription with a failing endpoint and three events behind the failed one. */
async function behind(): Promise<string> {
  receiver.answer = () => 503;
  const { id } = await world.subscribe({ webhook_url: receiver.url, label: "CRM" });
  await world.emit(3);
  await until("the first attempt", () => receiver.received.length > 0);
  return id;
}

/** Replaces the inbox by actions of a service that were rejected. */
async function rejected(...ids: readonly string[]): Promise<void> {
  const { sql } = world.database.db;
  const token = await world.api.login(world.tenants.superAdmin.email);
  const body = { name: "Writer", scopes: ["actions:write"] };
  const made = await world.api.call("POST", "/admin/services", { token, body });
  await sql`delete from inbox`;
  for (const id of ids) {
    const action = JSON.stringify({ id, event: "review_assigned" });
    await sql`
      insert into inbox (service_id, action) values (${Number(made.body["id"])}, ${action}::text::jsonb)`;
  }
  await sql`update inbox set state = 'rejected', errors = '{"review_id": "is required"}'`;
}
