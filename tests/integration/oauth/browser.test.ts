import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { Browser, Page } from "playwright-core";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { createFakeClock } from "../../support/clock.ts";
import { addClient, authorizeParams, formOf, newPkce, postForm } from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";

// Tests the authorize page in Chromium.

describe.skipIf(lacks("chromium"))("in a browser", () => {
  test("a user signs in and consents, and the client gets tokens", async () => {
    const { page, client, pkce } = await visit();
    await signIn(page, (await freshUser()).email);
    expect(await textOf(page, "h1")).toBe("Allow Dashboards by Acme to act for you?");
    await press(page, "allow");
    expect(page.url()).toStartWith(`${callback}?code=`);
    const { status } = await postForm(api, "/oauth/token", {
      grant_type: "authorization_code",
      code: new URL(page.url()).searchParams.get("code") ?? "",
      redirect_uri: callback,
      code_verifier: pkce.verifier,
      client_id: client.clientId,
      client_secret: client.secret,
    });
    expect(status).toBe(200);
  });

  test("the keyboard alone is enough, with JavaScript switched off", async () => {
    const { page } = await visit({ scripts: false });
    const { email } = await freshUser();
    await page.locator("#email:focus").waitFor();
    await page.keyboard.type(email);
    await page.keyboard.press("Tab");
    await page.locator("#password:focus").waitFor();
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Allow" }).waitFor();
    await page.keyboard.press("Tab");
    await page.locator("button[value=allow]:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/[?]code=/);
  });

  test("a screen reader hears names and roles", async () => {
    const { page } = await visit();
    for (const [role, name] of [
      ["heading", "Sign in"],
      ["textbox", "Email"],
      ["textbox", "Password"],
      ["button", "Sign in"],
      ["button", "Cancel and go back"],
    ] as const)
      expect([name, await page.getByRole(role, { name, exact: true }).count()]).toEqual([name, 1]);
    await signIn(page, (await freshUser()).email, "wrong");
    const field = page.getByRole("textbox", { name: "Password" });
    expect(await field.getAttribute("aria-describedby")).toBe("problem");
    expect(await page.getByRole("alert").count()).toBe(1);
  });

  test.each(["light", "dark"] as const)(
    "on a phone the page does not scroll sideways, %s",
    async (scheme) => {
      const { page } = await visit({ scheme, width: 320 });
      const wide = () => page.evaluate<number>("document.documentElement.scrollWidth");
      expect(await wide()).toBeLessThanOrEqual(320);
      await signIn(page, (await freshUser()).email);
      expect(await wide()).toBeLessThanOrEqual(320);
    },
  );

  test("an unregistered redirect URI shows a page, and a foreign frame stays empty", async () => {
    const { page, url } = await visit();
    await page.goto(url.replace(encodeURIComponent(callback), "https%3A%2F%2Fevil.example"));
    expect(page.url()).toStartWith(root);
    expect(await textOf(page, "h1")).toBe("The sign-in failed");
    await page.goto(`http://127.0.0.1:${app.port}/frame?${url}`);
    const frame = page.frames()[1];
    expect(await frame?.locator("form").count()).toBe(0);
  });
});

const database = browserFixture(createDatabase);
const tenants = browserFixture(() => addTenants(database.db));

let api: TestApi;

let root: string;

let callback: string;

let browser: Browser;

const clock = createFakeClock();

/** The client's own server, and a page of a stranger with a frame. */
const app = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) =>
    new URL(request.url).pathname === "/callback"
      ? new Response(`<title>Back</title>${new URL(request.url).search}`, {
          headers: { "Content-Type": "text/html" },
        })
      : new Response(`<title>Frame</title><iframe src="${request.url.split("?")[1]}"></iframe>`, {
          headers: { "Content-Type": "text/html" },
        }),
});

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  const port = await freePort();
  root = `http://127.0.0.1:${port}`;
  api = await startApi({ db: database.db, clock, config: { serverRoot: root } });
  api.listen(port);
  callback = `http://127.0.0.1:${app.port}/callback`;
  browser = await openBrowser();
});

afterAll(async () => {
  await app.stop(true);
  if (!isPresent("chromium")) return;
  await browser.close();
  await api.stop();
});

let names = 0;

const freshUser = () =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_admin",
    email: `browser-${++names}@p1.test`,
  });

interface Visit {
  readonly scheme?: "light" | "dark";
  readonly width?: number;
  readonly scripts?: boolean;
}

/** Opens a new browser profile at the page of a partner's client. */
async function visit({ scheme = "light", width = 1000, scripts = true }: Visit = {}) {
  const client = await addClient(database.db, {
    companyId: tenants.partners[0].id,
    name: "Dashboards by Acme",
    redirectUris: ["http://127.0.0.1/callback"],
    scopes: ["reviews:read", "reviews:write", "webhooks:read"],
  });
  const pkce = newPkce();
  const params = authorizeParams(client, pkce, { redirect_uri: callback });
  const context = await browser.newContext({
    javaScriptEnabled: scripts,
    viewport: { width, height: 740 },
    isMobile: width < 500,
    hasTouch: width < 500,
    colorScheme: scheme,
  });
  const page = await context.newPage();
  const url = `${root}/oauth/authorize?${formOf(params)}`;
  await page.goto(url);
  return { page, client, pkce, url };
}

async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.fill("#email", email);
  await page.fill("#password", password);
  await press(page, "sign_in");
}

async function press(page: Page, action: string): Promise<void> {
  await page.click(`button[value=${action}]`);
  await page.waitForLoadState();
}

const textOf = (page: Page, selector: string) => page.locator(selector).innerText();
