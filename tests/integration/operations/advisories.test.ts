// Runs the advisories command against a fake registry.
import { afterAll, expect, test } from "bun:test";

import { runCommand } from "../../support/processes/command.ts";

test("a known advisory for a used package fails the command and is shown, and none passes", async () => {
  // Only the lock of the TypeScript package has the second one.
  answer = async (request) => {
    const asked = Bun.gunzipSync(await request.arrayBuffer());
    const names = Object.keys(JSON.parse(new TextDecoder().decode(asked)));
    const known = ["elysia", "parse-json"].filter((name) => names.includes(name));
    return Response.json(Object.fromEntries(known.map((name) => [name, [ADVISORY]])));
  };
  const { status, said } = await advisories();
  const about = "<99.0.0: high, A stranger may sign in (https://advisories.example/1)";
  expect([status, said.trim().split("\n")]).toEqual([
    1,
    [`elysia ${about}`, `parse-json ${about}`, "2 known advisories."],
  ]);
  answer = () => Response.json({});
  expect((await advisories()).status).toBe(0);
});

test("an unreachable database is reported, with another status than an advisory", async () => {
  for (const [said, give] of [
    ["405", () => new Response("no", { status: 405 })],
    ["non-JSON", () => new Response("<html>")],
  ] as const) {
    answer = give;
    const result = await advisories();
    expect(result.status).toBe(75);
    expect(result.said).toStartWith("Nothing was checked because no advisory database");
    expect(result.said).toContain(said);
  }
  const away = await advisories(1);
  expect([away.status, away.said]).toEqual([75, expect.stringContaining("Nothing was checked")]);
});

const ADVISORY = {
  id: 1,
  url: "https://advisories.example/1",
  title: "A stranger may sign in",
  severity: "high",
  vulnerable_versions: "<99.0.0",
  cwe: [],
  cvss: { score: 7, vectorString: null },
};

let answer: (request: Request) => Response | Promise<Response>;

const registry = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(request) });

afterAll(() => registry.stop(true));

const advisories = (at = registry.port) =>
  runCommand(["scripts/supply/advisories.ts"], {
    NPM_CONFIG_REGISTRY: `http://127.0.0.1:${at}`,
  });
