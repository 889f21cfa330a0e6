import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { addIntegration } from "../../support/callers.ts";
import { fixture } from "../../support/fixture.ts";
import { addService, startWebhooks } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);

test("the routes that answer without a bearer token are those of contract 3.4", async () => {
  const app = createApp(world.api.deps);
  const open: string[] = [];
  for (const { method, path } of app.routes) {
    if (REFUSED.test(method) || !OF_API.test(path)) continue;
    const url = `http://localhost${path.replaceAll(/:\w+/g, "x")}`;
    const answer = await app.handle(new Request(url, { method }));
    if ((await answer.text()).includes('"unauthenticated"')) continue;
    open.push(nameOf({ method, path }));
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

test("every route refuses the callers outside its group with 403, before it looks at anything else", async () => {
  const app = createApp(world.api.deps);
  const tokens = Object.entries(await tokensByCaller());
  const open = namedByContract();
  const [wrong, ungrouped]: [unknown[], string[]] = [[], []];
  for (const { method, path } of app.routes) {
    const route = nameOf({ method, path });
    if (REFUSED.test(method) || !OF_API.test(path) || open.includes(route)) continue;
    const [, members] = GROUPS.find(([pattern]) => pattern.test(route)) ?? [];
    if (members === undefined) ungrouped.push(route);
    for (const [caller, token] of members === undefined ? [] : tokens) {
      if (members?.some((one) => one === caller)) continue;
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const url = `http://localhost${path.replaceAll(/:\w+/g, "x")}`;
      const malformed = method === "GET" ? {} : { body: "{" };
      const answer = await app.handle(new Request(url, { method, headers, ...malformed }));
      const isRefused = answer.status === 403 && (await answer.text()).includes('"forbidden"');
      if (!isRefused) wrong.push([route, caller, answer.status]);
    }
  }
  expect(wrong).toEqual([]);
  expect(ungrouped.toSorted()).toEqual(OF_ANY_TOKEN);
});

/** Signs in a user of each role, and makes a token of a service. */
async function tokensByCaller() {
  const { api, tenants, tokens } = world;
  return {
    super_admin: tokens.root,
    partner_owner: tokens.owner,
    partner_admin: tokens.admin,
    account_owner: tokens.account,
    account_user: await api.login(tenants.partners[0].accounts[0].user.email),
    location_user: tokens.location,
    partner_integration: (await addIntegration(api, tokens.owner)).token,
    service: (await addService(world, ["actions:write", "tokens:introspect"])).token,
  };
}

type Role = keyof Awaited<ReturnType<typeof tokensByCaller>>;

const OF_ACCOUNTS: readonly Role[] = ["account_owner", "account_user", "location_user"];
const USERS: readonly Role[] = ["super_admin", "partner_owner", "partner_admin", ...OF_ACCOUNTS];

/**
 * The callers of each group of contract 3.3, and of the routes that contracts 4.25, 4.27, 10.5 and 10.10 leave to owners
 * or to people. The first pattern that fits counts.
 */
const GROUPS: readonly (readonly [RegExp, readonly Role[]])[] = [
  [/ \/sso\/revoking-token$/, [...USERS, "partner_integration", "service"]],
  [/ \/(?:admin|sso)\//, ["super_admin"]],
  [/ \/partner\/(?:security|sessions)\b/, ["partner_owner"]],
  [
    /^(?:POST|PATCH|DELETE) \/partner\/users\b|\/partner\/users\/\{id\}\/identities/,
    ["partner_owner"],
  ],
  [
    /^(?:POST|PATCH|DELETE) \/partner\/integrations\b|\/partner\/integrations\/\{id\}\/api-token/,
    ["partner_owner"],
  ],
  [/ \/partner\/(?:integrations|tokens|embedding)\b/, ["partner_owner", "partner_admin"]],
  [/ \/partner\//, ["partner_owner", "partner_admin", "partner_integration"]],
  [/ \/account\/(?:sessions|api-token|personal-access-tokens|second-factors)\b/, USERS],
  [/ \/account\/(?:security|team-sessions|team-tokens)\b/, ["account_owner"]],
  [/ \/account\//, OF_ACCOUNTS],
  [/ \/platform\//, ["service"]],
];

/** The routes outside these groups: those of the caller's own token and password. */
const OF_ANY_TOKEN = [
  "GET /logout",
  "GET /verify-token",
  "POST /change-password",
  "POST /login/second-factor",
  "POST /reset-password",
];

/** Lists the endpoints in the first column of the table of contract 3.4. */
function namedByContract(): string[] {
  const page = readFileSync(join(import.meta.dir, "../../../docs/contract/3-access.md"), "utf8");
  const [, section = ""] = /## 3\.4 .*\n([^]*?)\n## /.exec(page) ?? [];
  const cells = [...section.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = ""]) => cell);
  return cells.flatMap((cell) =>
    [...cell.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, one = ""]) => one),
  );
}

/** Returns the name of a route as the contract writes it. */
const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) =>
  `${method} ${path.replace(BASE_PATH, "").replaceAll(/:(\w+)/g, "{$1}")}`;

const OF_API = /^\/(?:api|oauth)\//;
const OF_DASHBOARD = /^\/(?:dashboard|embed)\b/;
/** Methods that are registered only to be rejected: all others of a path, and HEAD where GET has an effect. */
const REFUSED = /^(?:ALL|HEAD)$/;
