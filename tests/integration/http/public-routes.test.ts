import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { fixture } from "../../support/fixture.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);

test("the routes that answer without a bearer token are those of contract 3.4", async () => {
  const app = createApp(world.api.deps);
  const open: string[] = [];
  for (const { method, path } of app.routes) {
    if (REFUSED.test(method) || !OF_API.test(path)) continue;
    const url = `http://localhost${path.replaceAll(/:\w+/g, "x")}`;
    const answer = await app.handle(new Request(url, { method }));
    if ((await answer.text()).includes('"unauthenticated"')) continue;
    open.push(`${method} ${path.replace(BASE_PATH, "").replaceAll(/:(\w+)/g, "{$1}")}`);
  }
  expect(open.toSorted()).toEqual(namedByContract().toSorted());
});

test("the only JSON that the description leaves out is the index of the guides", async () => {
  const app = createApp(world.api.deps);
  const { paths } = (await world.api.call("GET", "/openapi.json", { root: true })).body;
  const described = Object.keys(paths ?? {});
  const left = app.routes.filter(
    ({ method, path }) =>
      !REFUSED.test(method) && !described.includes(path.replaceAll(/:(\w+)/g, "{$1}")),
  );
  expect(left.filter(({ method }) => method !== "GET")).toEqual([]);
  const json: string[] = [];
  for (const { path } of left) {
    // All pages of the dashboard are one HTML document.
    if (OF_DASHBOARD.test(path)) continue;
    const answer = await app.handle(new Request(`http://localhost${path}`));
    if (answer.headers.get("content-type")?.includes("json")) json.push(path);
  }
  expect(json).toEqual(["/docs/search.json"]);
});

/** Lists the endpoints in the first column of the table of contract 3.4. */
function namedByContract(): string[] {
  const page = readFileSync(join(import.meta.dir, "../../../docs/contract/3-access.md"), "utf8");
  const [, section = ""] = /## 3\.4 .*\n([^]*?)\n## /.exec(page) ?? [];
  const cells = [...section.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = ""]) => cell);
  return cells.flatMap((cell) =>
    [...cell.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, one = ""]) => one),
  );
}

const OF_API = /^\/(?:api|oauth)\//;
const OF_DASHBOARD = /^\/(?:dashboard|embed)\b/;
/** Methods that are registered only to be rejected: all others of a path, and HEAD where GET has an effect. */
const REFUSED = /^(?:ALL|HEAD)$/;
