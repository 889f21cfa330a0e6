import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { renderGuide } from "../../src/docs/guide.ts";
import { docPages } from "../../src/docs/pages.ts";
import { CATALOG } from "../../src/outbox/event.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";

const DOCS = join(import.meta.dir, "../../src/docs");
let database: TestDatabase;
let api: TestApi;
beforeAll(async () => {
  database = await createDatabase();
  api = await startApi({ db: database.db });
});
afterAll(async () => {
  await api.stop();
  await database.drop();
});

const get = (path: string) => api.call("GET", path, { root: true });
const guides = readdirSync(join(DOCS, "guides")).map((name) => name.replace(".md", ""));
const pages = ["/docs", ...guides.map((name) => `/docs/${name}`)];

describe.each(pages)("%s", (path) => {
  test("is a page for every screen, with nothing from elsewhere", async () => {
    const { status, headers, text } = await get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle="|\bon\w+="/);
  });

  test("links only to what is there", async () => {
    const { text } = await get(path);
    const base = `http://localhost${path}`;
    const links = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = ""]) => link);
    for (const link of links.filter((one) => !one.startsWith("data:"))) {
      const { status } = await get(new URL(link, base).pathname);
      expect([link, status]).toEqual([link, 200]);
    }
  });

  test("names itself in the navigation", async () => {
    const { text } = await get(path);
    expect(text).toContain(`<a href="${path}" aria-current="page">`);
  });
});

describe("the guides", () => {
  test("are six, and each file is a page", () => {
    expect(guides.toSorted()).toEqual([
      "batch",
      "events",
      "going-live",
      "ordering-and-retries",
      "quick-start",
      "verifying",
    ]);
    expect(docPages().map(({ path }) => path)).toEqual(expect.arrayContaining(pages));
  });

  test("leave no placeholder behind", async () => {
    for (const path of pages) expect((await get(path)).text).not.toContain("{{");
  });

  test("show every verification snippet as it was tested", async () => {
    const { text } = await get("/docs/verifying");
    const shown = Bun.escapeHTML;
    for (const name of readdirSync(join(DOCS, "verify"))) {
      const [line = ""] = readFileSync(join(DOCS, "verify", name), "utf8")
        .split("\n")
        .filter((one) => one.includes("hmac") || one.includes("Hmac") || one.includes("HMAC"));
      expect(text).toContain(shown(line.trim()).replaceAll("&#x27;", "&#39;"));
    }
  });

  test("show each event of the catalog with its full and minimal body", async () => {
    const { text } = await get("/docs/events");
    for (const { value } of CATALOG) {
      expect(text).toContain(`<h2 id="${value.replaceAll(/[^a-z0-9]+/g, "-")}">${value}</h2>`);
      expect(text.split(`&quot;event&quot;: &quot;${value}&quot;`)).toHaveLength(3);
    }
  });

  test("name limits that the code has", async () => {
    const { text } = await get("/docs/going-live");
    for (const fact of ["15 s", "30 days", "600 a minute, 300 at once", "4 KiB"])
      expect(text).toContain(fact);
  });
});

test("headings can be linked to, and tables scroll for themselves", () => {
  const html = renderGuide("## Two `words`\n\n| a | b |\n|---|---|\n| 1 | **2** |\n");
  expect(html).toContain('<h2 id="two-words">Two <code>words</code></h2>');
  expect(html).toContain('<div class="table"><table>');
  expect(html).toContain("<td><strong>2</strong></td>");
});

test("the reference is the one of this server", async () => {
  expect((await get("/docs/reference.js")).text).toContain('url: "/openapi.json"');
  const bundle = await get("/docs/swagger-ui-bundle.js");
  expect(bundle.text.length).toBeGreaterThan(500_000);
  expect((await get("/docs/nothing")).status).toBe(404);
});
