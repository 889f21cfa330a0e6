// Tests the guides in a real browser. SCREENSHOTS=<folder> saves screenshots there.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { source as axeSource } from "axe-core";
import type { Browser } from "playwright-core";

import { servedFiles } from "../../../src/http/files.ts";
import { docPages } from "../../../src/docs/pages.ts";
import BASELINE from "../../golden/openapi-baseline.json" with { type: "json" };
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";

describe.skipIf(lacks("chromium"))("in a browser", () => {
  test.each([
    [390, "light"],
    [1280, "dark"],
  ] as const)("%p px wide, %s, everything is accessible", async (width, colorScheme) => {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    for (const path of ["/docs", "/docs/events", "/docs/reference", "/docs/reference/webhooks"]) {
      await page.goto(root + path);
      await page.getByRole("searchbox").waitFor();
      // The page's content security policy blocks foreign scripts, so the driver injects axe.
      await page.evaluate(axeSource);
      const found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
      const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
      expect([path, violations.map(({ id, nodes }) => [id, nodes[0]?.html])]).toEqual([path, []]);
      const overflow =
        "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect([path, await page.evaluate(overflow)]).toEqual([path, 0]);
      if (FOLDER !== undefined)
        await page.screenshot({
          path: join(FOLDER, `docs${path.replaceAll("/", "-")}-${width}.png`),
        });
    }
    await context.close();
  });

  test("the search leads to a section, and code blocks can be copied", async () => {
    const context = await browser.newContext({
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const page = await context.newPage();
    await page.goto(`${root}/docs`);
    await page.keyboard.press("/");
    await page.keyboard.type("refresh token good once");
    await page.getByRole("link", { name: "OAuth for apps: 4. Refresh" }).click();
    await page.waitForURL("**/docs/oauth#4-refresh");
    const block = page.locator(".code").first();
    await block.getByRole("button", { name: "Copy" }).click();
    await block.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate("navigator.clipboard.readText()");
    expect(copied).toBe(`${await block.locator("code").textContent()}`);
    expect(copied).toContain("curl -fsS");
    await context.close();
  });

  test("the keyboard finds an operation, and the language of samples is remembered", async () => {
    const page = await browser.newPage();
    await page.goto(`${root}/docs/reference`);
    await page.keyboard.press("/");
    await page.keyboard.type("rotate signing secret");
    await page.getByRole("link", { name: "API, Webhooks: Rotate the signing secret" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/docs/reference/webhooks#rotateSecret");
    await page.getByRole("radio", { name: "cURL" }).press("ArrowRight");
    const samples = page.locator("section:has(#rotateSecret) .samples");
    await samples
      .getByText('await relay.request("POST /partner/webhooks/{id}/rotate-secret"')
      .waitFor();
    expect(await samples.getByText("curl -X POST").isVisible()).toBe(false);
    await page.goto(`${root}/docs/reference/reviews`);
    expect(await page.getByRole("radio", { name: "TypeScript" }).isChecked()).toBe(true);
    await page.close();
  });

  test("everything is readable without JavaScript, also on a phone", async () => {
    const viewport = { width: 390, height: 844 };
    const context = await browser.newContext({ javaScriptEnabled: false, viewport });
    const page = await context.newPage();
    await page.goto(`${root}/docs`);
    const heading = await page.getByRole("heading", { level: 1 }).boundingBox();
    expect(heading?.y).toBeLessThan(150);
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "Events" }).click();
    await page.getByRole("heading", { name: "review_received" }).waitFor();
    await page.getByRole("link", { name: "Dashboard", exact: true }).waitFor();
    await context.close();
  });
});

const FOLDER = process.env["SCREENSHOTS"];

let browser: Browser;

let root: string;

const app = servedFiles(docPages("http://127.0.0.1:3000", () => BASELINE));

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  app.listen({ port: 0, hostname: "127.0.0.1" });
  root = `http://127.0.0.1:${app.server?.port}`;
  browser = await openBrowser();
});

afterAll(async () => {
  if (!isPresent("chromium")) return;
  await browser.close();
  await app.stop(true);
});
