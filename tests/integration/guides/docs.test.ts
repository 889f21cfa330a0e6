import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { EXCERPT_BYTES } from "../../../dispatcher/http/excerpt.ts";
import { STREAM_LIMITS } from "../../../src/http/event-stream.ts";
import { renderGuide } from "../../../src/docs/guide.ts";
import { GUIDES } from "../../../src/docs/pages.ts";
import { CATALOG } from "../../../src/outbox/event.ts";
import { startApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const api = fixture(() => startApi({ db: database.db }));
const pages = [...GUIDES.map(({ path }) => path), "/docs/reference", "/docs/reference/webhooks"];

describe.each(pages)("%s", (path) => {
  test("is a responsive page without external resources", async () => {
    const { status, headers, text } = await get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle="|\bon\w+="/);
  });

  test("links only to existing pages and headings", async () => {
    const { text } = await get(path);
    const links = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = ""]) => link);
    for (const link of links.filter((one) => !one.startsWith("data:"))) {
      const { pathname, hash } = new URL(link, `http://localhost${path}`);
      const there = await get(pathname);
      expect([link, there.status]).toEqual([link, pathname === "/" ? 302 : 200]);
      if (hash !== "") expect(there.text).toContain(`id="${hash.slice(1)}"`);
    }
  });

  test("links to the dashboard and is readable without JavaScript", async () => {
    const { text } = await get(path);
    expect(text).toContain('<a class="back" href="/dashboard">');
    for (const guide of GUIDES) expect(text).toContain(`<a href="${guide.path}"`);
  });

  test("names the service in code alone, because a white label has another name", async () => {
    const { text } = await get(path);
    expect(text.replaceAll(/<(code|pre)[^]*?<\/\1>/g, "")).not.toContain("ReviewRelay");
  });

  test("is marked in the navigation", async () => {
    const { text } = await get(path);
    expect(text).toContain(`<a href="${path}" aria-current="page">`);
  });
});

describe("the guides", () => {
  test("are the ones in the table of contents, each with a file", () => {
    const files = readdirSync(join(DOCS, "guides")).map((name) => name.replace(".md", ""));
    expect(files.toSorted()).toEqual(GUIDES.map(({ name }) => name).toSorted());
  });

  test("run every block, or state why not", () => {
    const marks = GUIDES.flatMap(({ name }) =>
      [...markdownOf(name).matchAll(/^```(\S.*)$/gm)].map(([, info = ""]) => `${name}: ${info}`),
    );
    expect(marks.length).toBeGreaterThan(30);
    for (const mark of marks) expect(mark).toMatch(/: (?:sh run|\w+ not-run \w.{9,})$/);
  });

  test("leave no placeholder behind", async () => {
    for (const path of pages) expect((await get(path)).text).not.toContain("{{");
  });

  test("show every verification snippet as tested", async () => {
    const { text } = await get("/docs/receiving");
    const shown = Bun.escapeHTML;
    for (const name of readdirSync(join(DOCS, "verify"))) {
      const [line = ""] = readFileSync(join(DOCS, "verify", name), "utf8")
        .split("\n")
        .filter((one) => one.includes("hmac") || one.includes("Hmac") || one.includes("HMAC"));
      expect(text).toContain(shown(line.trim()).replaceAll("&#x27;", "'"));
    }
  });

  test("show each event of the catalog with its full and minimal body", async () => {
    const { text } = await get("/docs/events");
    for (const { value } of CATALOG) {
      expect(text).toContain(`<h2 id="${value.replaceAll(/[^a-z0-9]+/g, "-")}">${value}`);
      expect(text.split(`&quot;event&quot;: &quot;${value}&quot;`)).toHaveLength(3);
    }
  });

  test("describe every field of every event, and no other", () => {
    const named = new Set(
      [...markdownOf("events").matchAll(/^\| (`.*?`(?:, `.*?`)*) \|/gm)].flatMap(([, names = ""]) =>
        names.split(", ").map((one) => one.replaceAll("`", "")),
      ),
    );
    const examples: Record<string, { full: string; minimal: string }> = JSON.parse(
      readFileSync(join(DOCS, "event-examples.json"), "utf8"),
    );
    const found = Object.values(examples).flatMap(({ full, minimal }) =>
      [full, minimal].flatMap((body) => fieldsOf(JSON.parse(body))),
    );
    expect([...named].toSorted()).toEqual([...new Set(found)].toSorted());
  });

  test("state the limits of the code", async () => {
    const { text } = await get("/docs/errors-and-limits");
    const { rateLimit, retentionDays } = api.deps.config;
    for (const fact of [
      `${retentionDays} days`,
      `${rateLimit.user.perMinute} a minute, ${rateLimit.user.burst} at once`,
      `${EXCERPT_BYTES / 1024} KiB`,
      `${STREAM_LIMITS.perUser} for a user`,
    ])
      expect(text).toContain(fact);
    for (const code of ["slot_occupied", "subscription_disabled", "already_queued"])
      expect(text).toContain(code);
  });

  test("are found by the search", async () => {
    const index = JSON.parse((await get("/docs/search.json")).text) as Record<string, string>[];
    for (const { path = "" } of index)
      expect((await get(path.replace(/#.*/, ""))).status).toBe(200);
    const found = index.filter(({ text = "" }) => text.includes("refresh token is good once"));
    expect(found.map(({ path }) => path)).toEqual(["/docs/oauth#4-refresh"]);
  });
});

test("headings have links, tables scroll separately, and the marks of blocks are not shown", () => {
  const { html, sections } = renderGuide(
    "## Two `words`\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n```sh not-run it <needs> a person\na < b\n```\n",
    ROOT,
  );
  expect(html).toContain('<h2 id="two-words">Two <code>words</code>');
  expect(html).toContain('<div class="table" tabindex="0"><table>');
  expect(html).toContain("<td><strong>2</strong></td>");
  expect(html).toContain("a &lt; b");
  expect(html).not.toContain("a person");
  expect(sections).toMatchObject([{ id: "two-words", title: "Two words", depth: 2 }]);
});

test("a page is compressed as the client accepts, and answered 304 if unchanged", async () => {
  const ask = (headers: Record<string, string>) =>
    api.call("GET", "/docs/events", { root: true, headers });
  const { headers, text } = await ask({ "Accept-Encoding": "identity" });
  expect(headers.get("content-encoding")).toBeNull();
  expect(headers.get("vary")).toBe("Accept-Encoding");
  expect((await ask({ "Accept-Encoding": "gzip" })).headers.get("content-encoding")).toBe("gzip");
  expect((await ask({ "Accept-Encoding": "gzip, br" })).headers.get("content-encoding")).toBe("br");
  const etag = headers.get("etag") ?? "";
  const again = await ask({ "If-None-Match": etag });
  expect([again.status, again.text]).toEqual([304, ""]);
  expect((await ask({ "If-None-Match": 'W/"other"' })).text).toBe(text);
});

/** Returns the paths of all fields, with dots for nesting. */
function fieldsOf(value: unknown, path = ""): string[] {
  // The content of metadata depends on the event.
  if (typeof value !== "object" || value === null || path === "metadata") return [path];
  return Object.entries(value).flatMap(([name, one]) =>
    fieldsOf(one, path === "" ? name : `${path}.${name}`),
  );
}

const DOCS = join(import.meta.dir, "../../../src/docs");

const markdownOf = (name: string) => readFileSync(join(DOCS, "guides", `${name}.md`), "utf8");

const get = (path: string) => api.call("GET", path, { root: true });

const ROOT = "http://localhost:3000";
