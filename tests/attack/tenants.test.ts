import { beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { fieldsOf, isRecord } from "../../src/lib/fields.ts";
import type { Answer } from "../support/api.ts";
import { CALLER_KINDS, callerOf, type CallerKind } from "../support/callers.ts";
import { operationsIn } from "../hostile/description.ts";
import { startSignInWorld } from "../support/sign-in.ts";
import type { TestUser } from "../support/tenants.ts";
import { settleIn } from "../support/victims.ts";
import { fixture } from "../support/fixture.ts";

/*
 * Tenant isolation. Every kind of caller sends the ids of another tenant to every route that takes an id in its path, query
 * or body. The response must equal that for an unknown id, or be a bare 403. It must reveal nothing of the other tenant,
 * and the database must not change.
 */
const WITH_ALL_SCOPES: readonly CallerKind[] = ["own", "dashboard", "third", "acting"];
const CALLERS: readonly (readonly [Role, CallerKind])[] = [
  ...CALLER_KINDS.map((kind) => ["owner", kind] as const),
  // Narrower tokens see less: one role tries them.
  ...WITH_ALL_SCOPES.map((kind) => ["account owner", kind] as const),
  ...WITH_ALL_SCOPES.map((kind) => ["location user", kind] as const),
  ["admin", "own"],
  ["account user", "own"],
];
const world = fixture(startSignInWorld);
const mine = fixture(() => settleIn(world, 0));
const theirs = fixture(() => settleIn(world, 1));

test("every path parameter is an id of this test, except the provider and the portal's key", () => {
  const unknown = operations.filter(({ path }) =>
    path
      .replace(/^\/[\w-]+\/[\w-]+\/\{\w+\}/, (prefix) => (theirs.has(prefix) ? "" : prefix))
      .replaceAll(
        /\{(?:checkId|eventId|externalId|identityId|sessionId|subscriptionId|tokenId)\}/g,
        "",
      )
      .includes("{"),
  );
  // These routes have no tenants as callers: a code opens a portal session, and providers sign their requests.
  expect(unknown.map(({ path }) => path)).toEqual([
    "/embed/{key}/session",
    "/providers/{provider}/events",
  ]);
  expect(operations.flatMap((one) => attacksOn(one, never)).length).toBeGreaterThan(60);
});

test("the other tenant can read its own records by these ids", async () => {
  const read = new Set<string>();
  const marked = new Set<string>();
  for (const role of ["owner", "account owner"] as const) {
    const token = await world.api.login(userOf(role, 1).email);
    for (const { method, path } of operations.filter((one) => one.path.includes("{"))) {
      const filled = path
        .replace(/^\/[\w-]+\/[\w-]+\/\{id\}/, (text) => text.replace("{id}", `${theirs.get(text)}`))
        .replace("{checkId}", String(theirs.get("{checkId}")))
        .replace("{eventId}", String(theirs.get("{eventId}")));
      if (method !== "GET" || path.endsWith("/stream")) continue;
      const { status, text } = await world.api.call(method, filled, { token });
      if (status === 200) read.add(path);
      if (THEIR_MARK.test(text)) marked.add(path);
    }
  }
  expect([...read].toSorted()).toEqual([
    "/account/reviews/{id}",
    "/partner/integrations/{id}",
    "/partner/integrations/{id}/api-token",
    "/partner/oauth-clients/{id}",
    "/partner/reviews/{id}",
    "/partner/users/{id}/identities",
    "/partner/webhooks/{id}",
    "/partner/webhooks/{id}/check/{checkId}",
    "/partner/webhooks/{id}/deliveries",
    "/partner/webhooks/{id}/deliveries/{eventId}",
    "/partner/webhooks/{id}/health",
    "/partner/webhooks/{id}/incident",
    "/partner/webhooks/{id}/incidents",
    "/partner/webhooks/{id}/messages",
    "/partner/webhooks/{id}/stats",
  ]);
  // The attacks below search for this mark. The other answers have only numbers and times, so that their status decides.
  expect([...marked]).toEqual(
    expect.arrayContaining([
      "/account/reviews/{id}",
      "/partner/integrations/{id}",
      "/partner/oauth-clients/{id}",
      "/partner/reviews/{id}",
      "/partner/users/{id}/identities",
      "/partner/webhooks/{id}",
    ]),
  );
});

test.each(CALLERS)(
  "the %s of one tenant learns and changes nothing of another, with a token of kind %s",
  async (role, kind) => {
    const caller = await callerOf(world, userOf(role), kind);
    // Partners cannot be impersonated.
    if (caller === null) return;
    const { token } = caller;
    const before = await snapshot();
    for (const operation of operations) {
      const known = attacksOn(operation, (name) => theirs.get(name) ?? "");
      const unknown = attacksOn(operation, (name) => never(theirs.get(name) ?? ""));
      for (const [at, attack] of known.entries()) {
        const answer = await world.api.call(attack.method, attack.path, {
          token,
          body: attack.body,
        });
        const { method, path, body } = unknown[at] ?? attack;
        // A bare 403 is the same for every id, so that nothing has to be compared with it.
        if (path.startsWith("/partner/webhooks") || learned(answer) !== DENIED) {
          const other = await world.api.call(method, path, { token, body });
          expect(learned(answer)).toEqual(learned(other));
        }
        // A list may be filtered by an id of another tenant. Every other request with one must fail.
        const isFilter = method === "GET" && attack.path.includes("?");
        expect([attack, answer.status < 300 && !isFilter]).toEqual([attack, false]);
        expect([attack, THEIR_MARK.test(answer.text)]).toEqual([attack, false]);
      }
    }
    expect(await snapshot()).toBe(before);
  },
);

const BASE = "/api/v1";

/** The word in the names of all records of the other tenant. */
const THEIR_MARK = /\bp2\b/;

/** Routes that are left out: they revoke the caller's token, or belong to a sign-in and know no tenant. */
const EXCLUDED = /^\/(logout|sso\/revoking-token|auth\/)/;

type Role = "owner" | "admin" | "account owner" | "account user" | "location user";

interface Operation {
  readonly method: string;
  /** The path below `/api/v1`. */
  readonly path: string;
  /** The names of the query parameters that are ids. */
  readonly query: readonly string[];
  /** The example body of the OpenAPI document. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

let operations: readonly Operation[];

beforeAll(async () => {
  const { body } = await world.api.call("GET", "/openapi.json", { root: true });
  operations = operationsOf(body);
});

function operationsOf(description: unknown): Operation[] {
  return operationsIn(description).flatMap(({ method, path, parameters, content }) => {
    const below = path.slice(BASE.length);
    if (!path.startsWith(BASE) || EXCLUDED.test(below)) return [];
    const query = parameters.flatMap((one) =>
      one.in === "query" && theirs.has(one.name) ? [one.name] : [],
    );
    const { example } = fieldsOf(content["application/json"]);
    return [{ method, path: below, query, body: isRecord(example) ? example : undefined }];
  });
}

/** Makes an unknown id of the same form as `id`. */
const never = (id: string | number): string | number => {
  if (typeof id === "number") return 2_000_000_000;
  return id.includes("-") ? crypto.randomUUID() : ulid();
};

interface Attack {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Builds one request per id of an operation. That id comes from `idOf`, all others are the caller's own. */
function attacksOn(operation: Operation, idOf: (name: string) => string | number): Attack[] {
  const { method, path, query, body } = operation;
  const [prefix] = /^\/[\w-]+\/[\w-]+\/\{\w+\}/.exec(path) ?? [];
  const fill = (name: string, id: string | number) =>
    path
      .replace(prefix ?? "\0", (text) => text.replace("{id}", String(pick(prefix, name, id))))
      .replace(
        /\{(?:checkId|eventId|externalId|identityId|sessionId|subscriptionId|tokenId)\}/g,
        (place) => String(pick(place, name, id)),
      );
  const own = fill("", "");
  const places = [
    prefix,
    ...(path.match(
      /\{(?:checkId|eventId|externalId|identityId|sessionId|subscriptionId|tokenId)\}/g,
    ) ?? []),
  ];
  const inPath = places.flatMap((name) =>
    name === undefined
      ? []
      : [{ method, path: fill(name, idOf(name)), ...(body !== undefined && { body }) }],
  );
  const inQuery = query.map((name) => ({ method, path: `${own}?${name}=${idOf(name)}` }));
  const fields = Object.keys(body ?? {}).filter((name) => theirs.has(name));
  const inBody = fields.map((name) => ({
    method,
    path: own,
    body: { ...body, [name]: Array.isArray(body?.[name]) ? [idOf(name)] : idOf(name) },
  }));
  return [...inPath, ...inQuery, ...inBody];
}

const pick = (place: string | undefined, name: string, id: string | number) =>
  place === name ? id : (mine.get(place ?? "") ?? "");

/**
 * The response to a record of another tenant, except below /partner/webhooks; it also writes an audit row (contract
 * 2.6).
 */
const DENIED = '403 {"message":"This action is not allowed for your user.","code":"forbidden",}';

/** Reduces a response to its information: the status and the text without the request id. */
const learned = ({ status, text }: Answer): string =>
  `${status} ${text.replaceAll(/"request_id":"[^"]*"/g, "")}`;

/** Hashes all rows of all tables, except the audit log and the times of last use, which every request may change. */
async function snapshot(): Promise<string> {
  const { sql } = world.database.db;
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE' and table_name not like 'audit_log%'
       and table_name <> 'token_uses' order by 1`;
  const rows = await Promise.all(
    tables.map(({ name }) =>
      sql.unsafe(
        `select coalesce(string_agg(md5((to_jsonb(t) - 'last_used_at')::text), '' order by to_jsonb(t)::text), '') as all from "${name}" t`,
      ),
    ),
  );
  return JSON.stringify(rows);
}

function userOf(role: Role, nth: 0 | 1 = 0): TestUser {
  const { owner, admin, accounts } = world.tenants.partners[nth];
  const [account] = accounts;
  const users: Record<Role, TestUser> = {
    owner,
    admin,
    "account owner": account.owner,
    "account user": account.user,
    "location user": account.locationUser,
  };
  return users[role];
}
