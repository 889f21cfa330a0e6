import { describe, expect, test } from "bun:test";

import type { Built } from "../../../src/dashboard/assets.ts";
import { dashboardSite } from "../../../src/dashboard/site.ts";
import { encode } from "../../../src/lib/encodings.ts";

describe("the dashboard's files", () => {
  test("are built once for concurrent requests", async () => {
    let builds = 0;
    const get = site(async () => {
      builds += 1;
      return built;
    });
    const answers = await Promise.all([
      get("/dashboard"),
      get("/dashboard/keys"),
      get("/dashboard"),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await get("/dashboard");
    expect(builds).toBe(1);
  });

  test("are built again after a failed build, which fails all requests that waited for it", async () => {
    let builds = 0;
    const get = site(async () => {
      builds += 1;
      if (builds === 1) throw new Error("There is no room.");
      return built;
    });
    const first = await Promise.all([get("/dashboard"), get("/dashboard")]);
    expect(first.map(({ status }) => status)).toEqual([500, 500]);
    expect((await get("/dashboard")).status).toBe(200);
    expect(builds).toBe(2);
  });

  test.each([
    ["br", "br"],
    ["gzip, deflate, br, zstd", "br"],
    ["gzip", "gzip"],
    ["GZIP;Q=0.5", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["br; q=0.000, gzip;q=0", null],
    ["*", "br"],
    ["br;q=0, *", "gzip"],
    ["*;q=0", null],
    ["identity", null],
    ["brotli", null],
    ["", null],
  ])("are sent for the Accept-Encoding %p as %p", async (accepted, encoding) => {
    const get = site(async () => built);
    const answer = await get("/dashboard/assets/main-1.js", { "Accept-Encoding": accepted });
    expect(answer.headers.get("Content-Encoding")).toBe(encoding);
    expect(answer.headers.get("Vary")).toBe("Accept-Encoding");
    const length = (await answer.arrayBuffer()).byteLength;
    expect(length === bytes.byteLength).toBe(encoding === null);
  });
});

const bytes = new TextEncoder().encode("let a = 1;".repeat(100));

const built: Built = {
  document: '<script src="/dashboard/assets/main-1.js" nonce="{{nonce}}"></script>',
  assets: [{ name: "main-1.js", contentType: "text/javascript", encodings: encode(bytes) }],
};

function site(read: () => Promise<Built>) {
  const app = dashboardSite({ read, framedBy: async () => [] });
  return (path: string, headers: Record<string, string> = {}) =>
    app.handle(new Request(`http://localhost${path}`, { headers }));
}
