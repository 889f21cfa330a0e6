// Asks a registry of the test's own for advisories, as the command asks the one that packages come from.
import { afterAll, expect, test } from "bun:test";

import { runCommand } from "../../support/processes/command.ts";

const ADVISORY = {
  id: 1,
  url: "https://advisories.example/1",
  title: "A stranger may sign in",
  severity: "high",
  vulnerable_versions: "<99.0.0",
  cwe: [],
  cvss: { score: 7, vectorString: null },
};

let answer: () => Response;
const registry = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => answer() });
afterAll(() => registry.stop(true));

const advisories = (at = registry.port) =>
  runCommand(["scripts/supply/advisories.ts"], {
    NPM_CONFIG_REGISTRY: `http://127.0.0.1:${at}`,
  });

test("a known advisory for a package of ours fails, and is named", async () => {
  answer = () => Response.json({ elysia: [ADVISORY] });
  const { status, said } = await advisories();
  expect([status, said]).toEqual([
    1,
    "elysia <99.0.0: high, A stranger may sign in (https://advisories.example/1)\n1 known advisories for the packages of bun.lock.\n",
  ]);
});

test("none passes, with the number", async () => {
  answer = () => Response.json({});
  expect(await advisories()).toEqual({
    status: 0,
    said: "0 known advisories for the packages of bun.lock.\n",
  });
});

test("a database that is not to be had fails nobody, and is said", async () => {
  for (const [said, give] of [
    ["405", () => new Response("no", { status: 405 })],
    ["non-JSON", () => new Response("<html>")],
  ] as const) {
    answer = give;
    const result = await advisories();
    expect(result.status).toBe(0);
    expect(result.said).toStartWith("Nothing was checked: no advisory database");
    expect(result.said).toContain(said);
  }
  const away = await advisories(1);
  expect([away.status, away.said]).toEqual([0, expect.stringContaining("Nothing was checked")]);
});
