import { readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import type { BrowserContext, Frame, Page } from "playwright-core";

import { allErrors, checkLooks, fits } from "../../support/dashboard/dashboard.ts";
import { buttonsOnTab, SUBSCRIPTION_BUTTONS } from "../../support/dashboard/locators.ts";
import { useDashboard } from "../../support/dashboard/use-dashboard.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { until } from "../../support/network/receiver.ts";
import { addUser } from "../../support/tenants.ts";

// The portal in a frame of another origin (contract 6.20), in the host page of the guide "Embedding".

const world = useDashboard();

describe.skipIf(lacks("chromium"))("the portal in a frame", () => {
  const LOOKS = [
    { width: 1280, theme: "light", colorScheme: "dark" },
    { width: 390, theme: "dark", colorScheme: "light" },
  ] as const;
  test.each(LOOKS)(
    "has the partner's colour, the link's theme and a height that the host applies: %p",
    async ({ theme, ...look }) => {
      links = [await link({ theme, access: "write" })];
      const { page, told, complaints } = await visit(look);
      await heading(page, "Webhooks").waitFor();
      await inFrame(page).getByText("Batch: not in use").waitFor();
      const frame = frameOf(page);
      const seen = await frame.evaluate<readonly string[]>(
        "[document.documentElement.dataset.mantineColorScheme, getComputedStyle(document.documentElement).getPropertyValue('--mantine-color-brand-6').trim()]",
      );
      // The partner's colour is lightened on a dark background, until its contrast suffices.
      expect(seen).toEqual([theme, theme === "light" ? "#7b1fa2" : "#9850b6"]);
      expect(await fits(frame)).toBe(true);
      await until("the frame is as high as its content", async () => {
        const height = await frame.evaluate<number>(
          "Math.ceil(document.querySelector('main').getBoundingClientRect().height)",
        );
        const box = await page.locator("#portal").boundingBox();
        return height > 300 && box?.height === Math.min(Math.max(height, 400), 1_600);
      });
      const all = await told();
      expect(all.map(({ type }) => type)).toContain("opened");
      expect(new Set(all.map(({ origin }) => origin))).toEqual(new Set([world.root]));
      const names = new Set(all.flatMap((one) => Object.keys(one)));
      expect([...names].toSorted()).toEqual(["height", "origin", "source", "type"]);
      expect(await allErrors(page)).toEqual([]);
      expect(await allErrors(frame)).toEqual([]);
      expect(complaints.filter((one) => !one.includes("favicon"))).toEqual([]);
    },
  );

  test("leaves no code and no token in addresses or storage after the first use", async () => {
    const url = await link({ access: "write" });
    const code = new URL(url).hash.slice("#code=".length);
    links = [url];
    const { page, requests } = await visit();
    await inFrame(page).getByRole("link", { name: "Reviews", exact: true }).click();
    await heading(page, "Reviews").waitFor();
    await inFrame(page).getByRole("tab", { name: "Settings" }).click();
    const frame = frameOf(page);
    const { pathname } = new URL(url);
    expect(frame.url()).toBe(`${world.root}${pathname}/webhooks/${webhook}?tab=settings`);
    const session = requests.find((one) => one.token !== "")?.token.replace("Bearer ", "") ?? "";
    expect(session).toContain("eyJ");
    const addresses = requests.flatMap(({ url: address, referer }) => [address, referer]);
    expect(addresses.filter((one) => one.includes(code) || one.includes("eyJ"))).toEqual([]);
    expect(requests.filter(({ body }) => body.includes(code)).map((one) => one.url)).toEqual([
      `${world.root}/api/v1${new URL(url).pathname}/session`,
    ]);
    // A browser that blocks third-party storage throws when it is read.
    const kept = await frame.evaluate<string>(
      "(() => { try { return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]) } catch (error) { return error.name } })()",
    );
    expect([kept.includes(code), kept.includes("eyJ")]).toEqual([false, false]);
    expect(await context.cookies()).toEqual([]);
    // The session has the rights of the link only.
    const users = await ask("GET", "/partner/users", undefined, session);
    expect(users.status).toBe(403);
  });

  test("is blocked by the browser on an unlisted origin, and its code stays valid", async () => {
    const url = await link();
    links = [url];
    const { page, requests, complaints, told } = await visit({ at: UNLISTED });
    await until("the browser refuses", () => complaints.some((one) => /frame-ancestors/.test(one)));
    expect(await told()).toEqual([]);
    expect(requests.filter((one) => /\/session$|\/api\/v1\//.test(one.url))).toEqual([]);
    expect(await frameOf(page).evaluate("document.body?.innerText ?? ''")).not.toContain(
      "Webhooks",
    );
    await context.close();
    links = [url];
    const { page: listed } = await visit();
    await heading(listed, "Webhooks").waitFor();
  });

  test("shows that a used link has ended, and notifies the host", async () => {
    const url = await link();
    links = [url];
    const { page, told } = await visit();
    await heading(page, "Webhooks").waitFor();
    links = [url];
    await stopHostClock(page);
    await page.reload();
    await inFrame(page).getByText("This link no longer works").waitFor();
    await inFrame(page).getByText("already used").waitFor();
    expect((await told()).map(({ type }) => type)).toContain("ended");
    expect(await allErrors(frameOf(page))).toEqual([]);
  });

  test("asks the host for another link after a reload, and continues with it", async () => {
    links = [await link(), await link()];
    const { page, told } = await visit();
    await heading(page, "Webhooks").waitFor();
    // The host page requests links at most every five seconds.
    await page.clock.install();
    await page.clock.fastForward(6_000);
    await frameOf(page).evaluate("location.reload()");
    await until("the host is told", async () =>
      (await told()).some(({ type }) => type === "ended"),
    );
    await until("the host has asked again", () => links.length === 0);
    await heading(page, "Webhooks").waitFor();
  });

  test("ends at once for its viewers when its creator is deactivated", async () => {
    const email = "maker@p1.test";
    const companyId = world.tenants.partners[0].id;
    const { id } = await addUser(world.database.db, { companyId, role: "partner_admin", email });
    links = [await link({}, await world.api.login(email))];
    const { page, told } = await visit();
    await heading(page, "Webhooks").waitFor();
    await stopHostClock(page);
    expect((await ask("POST", `/partner/users/${id}/deactivate`, {})).status).toBe(200);
    // The page may already have noticed the end, and then the link is gone.
    const reviews = inFrame(page).getByRole("link", { name: "Reviews", exact: true });
    await reviews.or(ended(page)).first().click();
    await ended(page).waitFor();
    expect((await told()).map(({ type }) => type)).toContain("ended");
  });

  test("of one subscription opens on it, and its list has no other", async () => {
    links = [await link({ pages: [`webhooks/${webhook}`] })];
    const { page } = await visit();
    await heading(page, "Reviews").waitFor();
    await inFrame(page).getByRole("link", { name: "Webhooks" }).click();
    await heading(page, "Webhooks").waitFor();
    await inFrame(page).getByRole("link", { name: "Reviews", exact: true }).waitFor();
    expect(await inFrame(page).getByText("not in use").count()).toBe(0);
    expect(await inFrame(page).getByRole("link", { name: "Alerts" }).count()).toBe(0);
  });
});

describe.skipIf(lacks("chromium"))("the portal in a separate window", () => {
  test.each(["write", "read", "of an operator"] as const)(
    "has the buttons that its link allows: %s",
    async (kind) => {
      const pages = [`webhooks/${webhook}`];
      const url = {
        write: () => link({ pages, access: "write" }),
        read: () => link({ pages }),
        "of an operator": () => operatorLink({ pages, access: "write" }),
      };
      context = await world.browser.newContext({ reducedMotion: "reduce" });
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      await page.goto(await url[kind]());
      for (const tab of ["Overview", "Deliveries", "Settings"] as const) {
        const all: readonly string[] = SUBSCRIPTION_BUTTONS[tab];
        const expected = {
          write: all,
          read: [],
          "of an operator": all.filter((name) => !/secret/.test(name)),
        };
        expect([tab, await buttonsOnTab(page, tab)]).toEqual([tab, [...expected[kind]]]);
      }
    },
  );

  test("of an operator who stops acting leads back to the partner, in the partner's colour", async () => {
    context = await world.browser.newContext({ reducedMotion: "reduce" });
    const page = await context.newPage();
    await page.goto(await operatorLink({ pages: ["webhooks"], access: "write" }));
    const [{ id }] = world.tenants.partners;
    const color = () =>
      page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--mantine-primary-color-filled')",
      );
    await page.getByText("stay with the owner").waitFor();
    const acting = await color();
    await page.getByRole("button", { name: "Stop acting" }).click();
    const back = page.getByRole("link", { name: "Back to p1" });
    expect(await back.getAttribute("href")).toBe(`/dashboard/companies/${id}`);
    expect(await color()).toBe(acting);
    await checkLooks(page, "portal-stopped");
  });

  test("opens by a link, and by a second one that replaces it", async () => {
    context = await world.browser.newContext({ reducedMotion: "reduce" });
    const page = await context.newPage();
    await page.goto(await link());
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    expect(page.url()).not.toContain("code");
    await page.reload();
    await page.getByText("Request a new link").waitFor();
    await page.goto(await link());
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
  });
});

describe.skipIf(lacks("chromium"))("the page about embedding", () => {
  test("lists origins, shows which one is invalid, creates a link to try, and previews the portal", async () => {
    const { page, faults } = await world.open("/embedding", {
      email: world.tenants.partners[1].owner.email,
    });
    const origins = page.getByRole("textbox", { name: "Origins" });
    await origins.fill("https://tools.example.com\nhttp://plain.example.com");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Origin number 2 must be an origin").waitFor();
    await checkLooks(page, "embedding error");
    await origins.fill("https://tools.example.com");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("radio", { name: "Change, test, resend, and show secrets" }).check();
    await page.getByRole("button", { name: "Create link" }).click();
    await page.getByRole("button", { name: "Show", exact: true }).click();
    const url = await page.getByLabel("Link", { exact: true }).inputValue();
    const preview = page.getByRole("link", { name: "Open preview" });
    expect(await preview.getAttribute("href")).toBe(url);
    await page
      .getByLabel("On your server", { exact: true })
      .getByText('"access":"write"')
      .waitFor();
    await page.getByRole("button", { name: "Load preview" }).click();
    const shown = page.frameLocator('iframe[title="Preview"]');
    await shown.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    expect(await shown.getByRole("link", { name: "Add an endpoint" }).count()).toBe(0);
    await page.getByText("Dark", { exact: true }).click();
    await shown.locator('html[data-mantine-color-scheme="dark"] h1').waitFor();
    await checkLooks(page, "embedding");
    expect(faults).toEqual([]);
    context = await world.browser.newContext({ reducedMotion: "reduce" });
    const opened = await context.newPage();
    await opened.goto(url);
    await opened.getByRole("link", { name: "Add an endpoint" }).click();
    await opened.getByRole("heading", { level: 1, name: "New subscription" }).waitFor();
  });
});

const HOST_PAGE = readFileSync(join(import.meta.dir, "../../../src/docs/embed/host.html"), "utf8");

let context: BrowserContext;

let token: string;

let webhook: string;

/** The portal links that the host's server returns to its page, in this order. */
let links: string[] = [];

/** The partner's site. Its server would request portal links from the API; here they are prepared. */
const host = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ method }) =>
    method === "POST"
      ? Response.json({ url: links.shift() ?? `${world.root}/embed/none` })
      : new Response(HOST_PAGE, { headers: { "Content-Type": "text/html" } }),
});

/** The same server is another origin under another host name. */
const LISTED = `http://localhost:${host.port}`;

const UNLISTED = `http://127.0.0.1:${host.port}`;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  const [{ id }] = world.tenants.partners;
  await world.database.db.sql`update companies set primary_color = '#7b1fa2' where id = ${id}`;
  token = await world.api.login(world.tenants.partners[0].owner.email);
  await ask("PATCH", "/partner/embedding", { origins: [LISTED] });
  const body = { label: "Reviews", delivery_kind: "immediate", webhook_url: "http://127.0.0.1:9/" };
  webhook = String((await ask("POST", "/partner/webhooks", body)).body["id"]);
});

beforeEach(() => {
  links = [];
});

afterEach(async () => {
  await context?.close();
});

afterAll(() => host.stop(true));

const ask = (method: string, path: string, body?: object, as = token) =>
  world.api.call(method, path, { token: as, body });

async function link(fields: object = {}, as = token): Promise<string> {
  const made = await ask("POST", "/partner/portal-links", { pages: ["webhooks"], ...fields }, as);
  expect(made.status).toBe(201);
  return String(made.body["url"]);
}

/** Creates a link to the pages of the first partner as an operator. */
async function operatorLink(fields: object): Promise<string> {
  const operator = await world.api.login(world.tenants.superAdmin.email);
  const path = `/admin/partners/${world.tenants.partners[0].id}/portal-links`;
  return String((await ask("POST", path, fields, operator)).body["url"]);
}

interface Visit {
  readonly at?: string;
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
}

/** Opens the host page. Returns it with the requests of its world.browser; `told` collects the messages of the frame. */
async function visit({ at = LISTED, width = 1280, colorScheme = "light" }: Visit = {}) {
  const viewport = { width, height: 900 };
  context = await world.browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const requests: { url: string; referer: string; body: string; token: string }[] = [];
  const complaints: string[] = [];
  context.on("request", (one) => {
    const { referer = "", authorization = "" } = one.headers();
    requests.push({ url: one.url(), referer, body: one.postData() ?? "", token: authorization });
  });
  page.on("console", (message) => complaints.push(message.text()));
  await page.addInitScript(
    "addEventListener('message', ({ data, origin }) => (window.told ??= []).push({ ...data, origin }))",
  );
  await page.goto(at);
  const told = () =>
    page.evaluate<{ type: string; height?: number; origin: string }[]>("window.told ?? []");
  return { page, requests, complaints, told };
}

/** Keeps the host page from replacing a session that ends more than five seconds after its start. */
const stopHostClock = (page: Page) => page.clock.setFixedTime(Date.now() - 60_000);

const inFrame = (page: Page) => page.frameLocator("#portal");

const heading = (page: Page, name: string) =>
  inFrame(page).getByRole("heading", { name, level: 1 });

const ended = (page: Page) => inFrame(page).getByText("This session has ended");

function frameOf(page: Page): Frame {
  const frame = page.frames().find((one) => one.parentFrame() !== null);
  if (frame === undefined) throw new Error("There is no frame.");
  return frame;
}
