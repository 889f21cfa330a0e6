// Runs the advisories command against a fake registry.
import { afterAll, expect, test } from "bun:test";

import { runCommand } from "../../support/processes/command.ts";

test("a known advisory for a used package fails the command and is shown, and none passes", async () => {
  answer = async (request) => Response.json(await known(request));
  const { status, said } = await advisories();
  expect([status, said.trim().split("\n")]).toEqual([
    1,
    [`elysia ${ABOUT}`, `parse-json ${ABOUT}`, "2 known advisories."],
  ]);
  answer = () => Response.json({});
  expect((await advisories()).status).toBe(0);
});

test("a lock file that cannot be checked is named, with another status than an advisory", async () => {
  for (const [said, give] of [
    ["405", () => new Response("no", { status: 405 })],
    ["non-JSON", () => new Response("<html>")],
  ] as const) {
    answer = give;
    const result = await advisories();
    expect([result.status, result.said.trim().split("\n")]).toEqual([
      75,
      ["bun.lock", TYPESCRIPT].map((file) => unchecked(file, said)),
    ]);
  }
  const away = await advisories(1);
  expect([away.status, away.said]).toEqual([75, expect.stringContaining("was not checked")]);
});

test("a lock file that cannot be checked does not hide the advisories of another", async () => {
  const end = async (give: (found: object) => Response) => {
    answer = async (request) => {
      const found = await known(request);
      return "parse-json" in found ? new Response("no", { status: 405 }) : give(found);
    };
    const { status, said } = await advisories();
    return [status, said.trim().split("\n")];
  };
  const gap = unchecked(TYPESCRIPT, "405");
  expect(await end(() => Response.json({}))).toEqual([75, [gap, "0 known advisories."]]);
  const lines = [`elysia ${ABOUT}`, gap, "1 known advisories."];
  expect(await end((found) => Response.json(found))).toEqual([1, lines]);
});

/** The lock file of the TypeScript package, the only one with `parse-json`. */
const TYPESCRIPT = "src/sdk/typescript/bun.lock";

const unchecked = (file: string, reason: string) =>
  expect.stringMatching(new RegExp(`^${file} was not checked: .*${reason}`));

const ADVISORY = {
  id: 1,
  url: "https://advisories.example/1",
  title: "A stranger may sign in",
  severity: "high",
  vulnerable_versions: "<99.0.0",
  cwe: [],
  cvss: { score: 7, vectorString: null },
};

const ABOUT = "<99.0.0: high, A stranger may sign in (https://advisories.example/1)";

/** Returns an advisory for some of the packages that a request names. */
async function known(request: Request): Promise<object> {
  const asked = Bun.gunzipSync(await request.arrayBuffer());
  const names = Object.keys(JSON.parse(new TextDecoder().decode(asked)));
  const found = ["elysia", "parse-json"].filter((name) => names.includes(name));
  return Object.fromEntries(found.map((name) => [name, [ADVISORY]]));
}

let answer: (request: Request) => Response | Promise<Response>;

const registry = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(request) });

afterAll(() => registry.stop(true));

const advisories = (at = registry.port) =>
  runCommand(["scripts/supply/advisories.ts"], {
    NPM_CONFIG_REGISTRY: `http://127.0.0.1:${at}`,
  });
