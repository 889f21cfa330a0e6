// Compares the paths in docs/operations/moving-in.md with those of the API, and runs the shipped configurations of proxies.
import { describe, expect, test } from "bun:test";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { createApp } from "../../src/app.ts";
import { lacks } from "../support/needs.ts";
import { startApi } from "../support/api.ts";
import { fixture } from "../support/fixture.ts";
import {
  GROUPS,
  isBelow,
  type PlatformProxy,
  startPlatformProxy,
} from "../support/platform-proxy.ts";
import { until } from "../support/network/receiver.ts";
import { startShipped } from "../support/shipped-proxy.ts";
import { createDatabase } from "../support/postgres.ts";

const database = fixture(createDatabase);
const api = fixture(() => startApi({ db: database.db }));

describe("the paths of the guide", () => {
  test("are those of the API: each route is in one group or stays with the platform", () => {
    for (const path of paths())
      expect([path, Object.keys(GROUPS).filter((group) => isIn(group, path))]).toEqual([
        path,
        STAY.has(path) ? [] : [expect.any(String)],
      ]);
  });

  test("exist: there is a route for each", () => {
    for (const one of Object.values(GROUPS).flat())
      expect([one, paths().some((path) => isBelow(one, path))]).toEqual([one, true]);
  });
});

for (const name of ["nginx", "caddy"] as const)
  test.skipIf(lacks(name))(
    `the shipped configuration of ${name} moves each group alone`,
    async () => {
      const [port, platform, reviewrelay] = await Promise.all([freePort(), freePort(), freePort()]);
      const servers = Object.entries({ platform, reviewrelay }).map(([server, at]) =>
        Bun.serve({ hostname: "127.0.0.1", port: at, fetch: () => new Response(server) }),
      );
      const proxy = await startPlatformProxy(name, { port, platform, reviewrelay });
      try {
        await expectMoved(proxy, Object.keys(GROUPS));
        for (const group of Object.keys(GROUPS)) {
          await proxy.move([group]);
          await expectMoved(proxy, [group]);
        }
        for (const path of [
          "/",
          "/api/v1/partner/webhooks-old",
          "/api/v1/logins",
          "/documents",
          "/api/v1/account/billing",
        ])
          expect([path, await whereIs(proxy, path)]).toEqual([path, "platform"]);
      } finally {
        await proxy.stop();
        await Promise.all(servers.map((server) => server.stop(true)));
      }
    },
  );

for (const [file, name] of [
  ["nginx.conf", "nginx"],
  // Both files of Caddy have the same options (deploy.test.ts).
  ["Caddyfile.platform", "caddy"],
] as const)
  test.skipIf(lacks(name))(
    `the log of ${name} with ${file} has no query of a request, answered or failed`,
    async () => {
      const [port, platform, ours] = await Promise.all([freePort(), freePort(), freePort()]);
      const proxy = await startShipped(file, { port, platform, apis: [ours] });
      const ask = (path: string) =>
        fetch(`${proxy.root}${path}?state=one-time-code`, {
          headers: { Referer: `${proxy.root}/dashboard?invitation=one-time-code` },
        });
      try {
        expect((await ask("/oauth/failed")).status).toBeGreaterThanOrEqual(502);
        using _ = Bun.serve({ hostname: "127.0.0.1", port: ours, fetch: () => new Response() });
        await until("an answer", async () => (await ask("/oauth/answered")).status === 200);
        // Caddy writes failed requests alone.
        const written = name === "nginx" ? "/oauth/answered" : "/oauth/failed";
        await until("the request is written", () => proxy.log().includes(written));
        expect(proxy.log()).not.toContain("one-time-code");
      } finally {
        await proxy.stop();
      }
    },
  );

/**
 * Polls until each path is answered by the right server. After a reload a worker of nginx with the former configuration
 * may still answer for a moment.
 */
async function expectMoved(proxy: PlatformProxy, groups: readonly string[]): Promise<void> {
  const wanted = paths().map((path) => [
    path,
    groups.some((group) => isIn(group, path)) ? "reviewrelay" : "platform",
  ]);
  let seen: string[][] = [];
  await until("each path is answered by its server", async () => {
    seen = [];
    for (const path of paths()) seen.push([path, await whereIs(proxy, path)]);
    return Bun.deepEquals(seen, wanted);
  }).catch(() => expect(seen).toEqual(wanted));
}

const whereIs = async (proxy: PlatformProxy, path: string) =>
  (await fetch(proxy.root + path, { keepalive: false })).text();

/** Paths of the API that the guide leaves with the platform. */
const STAY = new Set(["/", "/healthz", "/readyz", "/.well-known/security.txt"]);

const isIn = (group: string, path: string) =>
  (GROUPS[group] ?? []).some((one) => isBelow(one, path));

let known: readonly string[] = [];

const paths = (): readonly string[] => {
  if (known.length === 0) {
    const routes = createApp(api.deps).routes.filter(({ method }) => !/ALL|OPTIONS/.test(method));
    const written = routes.map(({ path }) => path.replaceAll(/:\w+/g, "1").replaceAll("*", "x"));
    known = [...new Set(written)];
  }
  return known;
};
