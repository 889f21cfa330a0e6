import { request } from "node:http";
import { text } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

import { beforeAll, describe, expect, test } from "bun:test";

import { Elysia } from "elysia";

import type { Built } from "../../../src/dashboard/assets.ts";
import { dashboardSite } from "../../../src/dashboard/site.ts";
import { startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";

// The document and the files of the dashboard over HTTP.

const database = fixture(createDatabase);
const api = fixture(() => startApi({ db: database.db }));

test("requests wait for a build that takes longer than the server's idle timeout", async () => {
  const built = Promise.withResolvers<Built>();
  const { server } = new Elysia()
    .get("/never", () => new Promise(() => {}))
    .use(dashboardSite({ read: () => built.promise, framedBy: async () => [] }))
    .listen({ port: 0, hostname: "127.0.0.1", idleTimeout: 1 });
  const statusOf = (path: string) =>
    fetch(new URL(path, server?.url)).then(
      ({ status }) => status,
      () => "closed",
    );
  const pages = Promise.all(["/dashboard", "/embed/key"].map(statusOf));
  // The server closes connections that were idle for as long together.
  expect(await statusOf("/never")).toBe("closed");
  built.resolve({ document: "<!doctype html>", assets: [] });
  expect(await pages).toEqual([200, 200]);
  await server?.stop(true);
});

describe("the document", () => {
  test("is the redirect target of the root", async () => {
    const response = await get("/");
    expect([response.status, response.headers.get("Location")]).toEqual([302, "/dashboard"]);
  });

  test.each(["", "/", "/webhooks", "/webhooks/01J/deliveries/02K", "/nowhere?code=x"])(
    "answers at /dashboard%s",
    async (path) => {
      const answer = await get(`/dashboard${path}`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("Content-Type")).toBe("text/html; charset=utf-8");
      expect(await answer.text()).toContain('<div id="root">');
    },
  );

  test("is never cached, and its policy allows this server only", async () => {
    const { headers } = await get("/dashboard");
    expect(headers.get("Cache-Control")).toBe("no-store");
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(headers.get("Referrer-Policy")).toBe("no-referrer");
    expect(headers.get("Cross-Origin-Opener-Policy")).toBe("same-origin");
    const policy = headers.get("Content-Security-Policy") ?? "";
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
      expect(policy.split("; ")).toContain(rule);
    expect(policy).not.toContain("unsafe");
  });

  test("has a new nonce each time, and no inline script or style", async () => {
    const [one, other] = [
      await (await get("/dashboard")).text(),
      await (await get("/dashboard")).text(),
    ];
    const nonceOf = (html: string) => /nonce="([^"]+)"/.exec(html)?.[1];
    expect(nonceOf(one)).toBeString();
    expect(nonceOf(one)).not.toBe(nonceOf(other));
    expect(one).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
  });

  test.each(["POST", "PUT", "DELETE"])("refuses %s with 405", async (method) => {
    for (const path of ["/dashboard", "/dashboard/keys", "/dashboard/assets/x.js"]) {
      const answer = await fetch(root + path, { method });
      expect(answer.status).toBe(405);
      expect(answer.headers.get("Allow")).toBe("GET, HEAD");
    }
  });

  test("answers HEAD without a body", async () => {
    const answer = await fetch(`${root}/dashboard`, { method: "HEAD" });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe("");
  });
});

describe("a file", () => {
  test("is cached forever under a hashed name, in the requested encoding", async () => {
    const paths = await assetPaths();
    expect(paths.length).toBeGreaterThanOrEqual(2);
    for (const path of paths) {
      const [plain, br, gzip] = [
        await get(path, { "Accept-Encoding": "identity" }),
        await get(path, { "Accept-Encoding": "gzip, br" }),
        await get(path, { "Accept-Encoding": "br;q=0, gzip" }),
      ];
      for (const { status, headers } of [plain, br, gzip]) {
        expect(status).toBe(200);
        expect(headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
        expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
        expect(headers.get("Vary")).toBe("Accept-Encoding");
        expect(headers.get("Content-Type")).toMatch(/^text\/(?:javascript|css)/);
      }
      expect(plain.headers.get("Content-Encoding")).toBeNull();
      expect(br.headers.get("Content-Encoding")).toBe("br");
      expect(gzip.headers.get("Content-Encoding")).toBe("gzip");
      const bytes = Buffer.from(await plain.arrayBuffer());
      expect(brotliDecompressSync(Buffer.from(await br.arrayBuffer())).equals(bytes)).toBe(true);
      expect(gunzipSync(Buffer.from(await gzip.arrayBuffer())).equals(bytes)).toBe(true);
    }
  });

  test.each([
    "main.js",
    "main-00000000.js",
    "",
    "..%2f..%2fpackage.json",
    "%2e%2e/%2e%2e/package.json",
    "....//package.json",
    "__proto__",
    "app/main.tsx",
    "..%5c..%5cpackage.json",
  ])("that does not exist is a 404: %p", async (name) => {
    const answer = await get(`/dashboard/assets/${name}`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get("Cache-Control")).toBe("no-store");
    expect(await answer.json()).toMatchObject({ code: "not_found" });
  });
});

test("no raw path escapes from the files", async () => {
  const { port } = new URL(root);
  const read = (path: string) =>
    new Promise<string>((resolve, reject) => {
      request(
        { host: "127.0.0.1", port, path },
        (answer) => void text(answer).then(resolve, reject),
      )
        .on("error", reject)
        .end();
    });
  for (const path of [
    "/dashboard/assets/../../package.json",
    "/dashboard/assets/../../../../../../etc/passwd",
    "/dashboard/assets//etc/passwd",
  ])
    expect([path, await read(path)]).toEqual([path, expect.stringContaining('"not_found"')]);
  // The server takes this as a path of the dashboard, so it returns the document.
  const body = await read("/dashboard/assets/\\..\\..\\package.json");
  expect(body).toContain('<div id="root">');
});

let root: string;

beforeAll(async () => {
  root = api.listen();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(root + path, { headers, redirect: "manual", decompress: false } as RequestInit);

async function assetPaths(): Promise<string[]> {
  const html = await (await get("/dashboard")).text();
  return [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(
    ([, path = ""]) => path,
  );
}
