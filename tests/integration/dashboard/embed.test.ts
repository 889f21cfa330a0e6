import { readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import type { Browser, BrowserContext, Frame, Page } from "playwright-core";

import type { TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { allErrors, openSignedIn, serveDashboard } from "../../support/dashboard/dashboard.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// The portal in a frame of another origin (contract 6.20), in the host page of the guide "Embedding".
// SCREENSHOTS=<folder> saves screenshots.

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
      await fits(frame);
      await until("the frame is as high as its content", async () => {
        const height = await frame.evaluate<number>(
          "Math.ceil(document.querySelector('main').getBoundingClientRect().height)",
        );
        const box = await page.locator("#portal").boundingBox();
        return height > 400 && box?.height === Math.min(height, 1_600);
      });
      const all = await told();
      expect(all.map(({ type }) => type)).toContain("opened");
      expect(new Set(all.map(({ origin }) => origin))).toEqual(new Set([root]));
      const names = new Set(all.flatMap((one) => Object.keys(one)));
      expect([...names].toSorted()).toEqual(["height", "origin", "source", "type"]);
      expect(await allErrors(page)).toEqual([]);
      expect(await allErrors(frame)).toEqual([]);
      expect(complaints.filter((one) => !one.includes("favicon"))).toEqual([]);
      await picture(page, `embed-${look.width}-${theme}`);
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
    expect(frame.url()).toBe(`${root}${pathname}/webhooks/${webhook}?tab=settings`);
    const session = requests.find((one) => one.token !== "")?.token.replace("Bearer ", "") ?? "";
    expect(session).toContain("eyJ");
    const addresses = requests.flatMap(({ url: address, referer }) => [address, referer]);
    expect(addresses.filter((one) => one.includes(code) || one.includes("eyJ"))).toEqual([]);
    expect(requests.filter(({ body }) => body.includes(code)).map((one) => one.url)).toEqual([
      `${root}/api/v1${new URL(url).pathname}/session`,
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
    await picture(page, "embed-unlisted");
    await context.close();
    links = [url];
    const { page: listed } = await visit();
    await heading(listed, "Webhooks").waitFor();
  });

  test("of a partner without listed origins is blocked everywhere", async () => {
    const [, two] = tenants.partners;
    links = [await link({}, await api.login(two.owner.email))];
    const { complaints } = await visit();
    await until("the browser refuses", () => complaints.some((one) => /frame-ancestors/.test(one)));
  });

  test("shows that a used link has ended, and notifies the host", async () => {
    const url = await link();
    links = [url];
    const { page, told } = await visit();
    await heading(page, "Webhooks").waitFor();
    links = [url];
    await page.reload();
    await ended(page).waitFor();
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
    const companyId = tenants.partners[0].id;
    const { id } = await addUser(database.db, { companyId, role: "partner_admin", email });
    links = [await link({}, await api.login(email))];
    const { page, told } = await visit();
    await heading(page, "Webhooks").waitFor();
    expect((await ask("POST", `/partner/users/${id}/deactivate`, {})).status).toBe(200);
    // The page may already have noticed the end, and then the link is gone.
    const reviews = inFrame(page).getByRole("link", { name: "Reviews", exact: true });
    await reviews.or(ended(page)).first().click();
    await ended(page).waitFor();
    expect((await told()).map(({ type }) => type)).toContain("ended");
  });

  test("of one subscription opens on it, and offers no changes with a read-only link", async () => {
    links = [await link({ pages: [`webhooks/${webhook}`] })];
    const { page } = await visit();
    await heading(page, "Reviews").waitFor();
    const buttons = await inFrame(page).getByRole("button").allInnerTexts();
    expect(buttons.filter((one) => /^(Test|Recover|Enable|Save|Rotate|Delete)/.test(one))).toEqual(
      [],
    );
    await inFrame(page).getByRole("link", { name: "Webhooks" }).click();
    await heading(page, "Webhooks").waitFor();
    await inFrame(page).getByRole("link", { name: "Reviews", exact: true }).waitFor();
    expect(await inFrame(page).getByText("not in use").count()).toBe(0);
    expect(await inFrame(page).getByRole("link", { name: "Alerts" }).count()).toBe(0);
  });
});

describe.skipIf(lacks("chromium"))("the portal in a separate window", () => {
  test("opens by a link, and by a second one that replaces it", async () => {
    context = await browser.newContext({ reducedMotion: "reduce" });
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
  test.each([
    { width: 1280, colorScheme: "light" },
    { width: 390, colorScheme: "dark" },
  ] as const)(
    "lists origins, shows which one is invalid, creates a link to try, and previews the portal: %p",
    async (look) => {
      const { page, faults } = await openSignedIn(browser, {
        root,
        path: "/embedding",
        email: tenants.partners[1].owner.email,
        ...look,
      });
      const origins = page.getByRole("textbox", { name: "Origins" });
      await origins.fill("https://tools.example.com\nhttp://plain.example.com");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Origin number 2 must be an origin").waitFor();
      expect(await allErrors(page)).toEqual([]);
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
      expect(await shown.getByRole("link", { name: "Set up immediate delivery" }).count()).toBe(0);
      await page.getByText("Dark", { exact: true }).click();
      await shown.locator('html[data-mantine-color-scheme="dark"] h1').waitFor();
      expect(await allErrors(page)).toEqual([]);
      await picture(page, `embedding-${look.width}`);
      expect(faults).toEqual([]);
      context = await browser.newContext({ reducedMotion: "reduce" });
      const opened = await context.newPage();
      await opened.goto(url);
      await opened.getByRole("link", { name: "Set up immediate delivery" }).click();
      await opened.getByRole("heading", { level: 1, name: "New subscription" }).waitFor();
      await page.close();
    },
  );
});

const database = browserFixture(createDatabase);
const tenants = browserFixture(() => addTenants(database.db));

const HOST_PAGE = readFileSync(join(import.meta.dir, "../../../src/docs/embed/host.html"), "utf8");

let api: TestApi;

let root: string;

let browser: Browser;

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
      ? Response.json({ url: links.shift() ?? `${root}/embed/none` })
      : new Response(HOST_PAGE, { headers: { "Content-Type": "text/html" } }),
});

/** The same server is another origin under another host name. */
const LISTED = `http://localhost:${host.port}`;

const UNLISTED = `http://127.0.0.1:${host.port}`;

beforeAll(async () => {
  if (!isPresent("chromium")) return;

  const [{ id }] = tenants.partners;
  await database.db.sql`update companies set primary_color = '#7b1fa2' where id = ${id}`;
  ({ api, root } = await serveDashboard({ db: database.db }));
  token = await api.login(tenants.partners[0].owner.email);
  await ask("PATCH", "/partner/embedding", { origins: [LISTED] });
  const body = { label: "Reviews", delivery_kind: "immediate", webhook_url: "http://127.0.0.1:9/" };
  webhook = String((await ask("POST", "/partner/webhooks", body)).body["id"]);
  browser = await openBrowser();
});

beforeEach(() => {
  links = [];
});

afterEach(async () => {
  await context?.close();
});

afterAll(async () => {
  await host.stop(true);
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
});

const ask = (method: string, path: string, body?: object, as = token) =>
  api.call(method, path, { token: as, body });

async function link(fields: object = {}, as = token): Promise<string> {
  const made = await ask("POST", "/partner/portal-links", { pages: ["webhooks"], ...fields }, as);
  expect(made.status).toBe(201);
  return String(made.body["url"]);
}

interface Visit {
  readonly at?: string;
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
}

/** Opens the host page. Returns it with the requests of its browser; `told` collects the messages of the frame. */
async function visit({ at = LISTED, width = 1280, colorScheme = "light" }: Visit = {}) {
  const viewport = { width, height: 900 };
  context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
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

const inFrame = (page: Page) => page.frameLocator("#portal");

const heading = (page: Page, name: string) =>
  inFrame(page).getByRole("heading", { name, level: 1 });

const ended = (page: Page) => inFrame(page).getByText("This session has ended");

function frameOf(page: Page): Frame {
  const frame = page.frames().find((one) => one.parentFrame() !== null);
  if (frame === undefined) throw new Error("There is no frame.");
  return frame;
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["SCREENSHOTS"];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
}

const fits = (frame: Frame) =>
  until("the frame fits", async () =>
    Boolean(
      await frame.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
      ),
    ),
  );
