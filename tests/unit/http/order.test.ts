import { describe, expect, test } from "bun:test";

import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../../src/http/access.ts";
import { checks } from "../../../src/http/checks.ts";
import { edge, refuseOtherMethods } from "../../../src/http/edge.ts";
import { NO_FIELDS } from "../../../src/http/fields.ts";
import { loads } from "../../../src/http/request-state.ts";
import { health } from "../../../src/http/metrics.ts";
import type { Principal } from "../../../src/http/principal.ts";
import type { RuleInput } from "../../../src/http/rules.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { Problem } from "../../../src/lib/problem.ts";

describe("the order of checks", () => {
  // Each row has the error of its title and that of every later row.
  test.each<[number, string, Sent]>([
    [
      413,
      "payload_too_large",
      { body: tooLarge, role: "", type: "text/plain", path: "/things/9?dry=x" },
    ],
    [401, "unauthenticated", { body: "{", role: "", type: "text/plain", path: "/things/9?dry=x" }],
    [403, "forbidden", { body: "{", role: "account_user", type: "text/plain", path: "/things/9" }],
    [415, "unsupported_media_type", { body: "{", type: "text/plain", path: "/things/9?dry=x" }],
    [400, "invalid_json", { body: "{", path: "/things/9?dry=x" }],
    [404, "not_found", { body: "{}", path: "/things/9?dry=x" }],
    [403, "forbidden", { body: "{}", path: "/things/2?dry=x" }],
    [422, "validation_failed", { body: '{"name":""}', path: "/things/1" }],
    [422, "validation_failed", { body: '{"name":"taken"}', path: "/things/1?dry=x" }],
    [409, "slot_occupied", { body: '{"name":"taken"}' }],
  ])("returns %d %s before all later checks", async (status, expected, sent) => {
    const answer = await send(sent);
    expect(answer.status).toBe(status);
    expect(code(answer)).toBe(expected);
  });

  test("ends at the handler if nothing is wrong", async () => {
    expect(await send()).toMatchObject({ status: 200, text: '{"id":1,"name":"a"}' });
  });
});

/** Makes a valid body of this many bytes. */
const padded = (size: number) => `{"name":"${"a".repeat(size - 11)}"}`;
const stream = (size: number) =>
  new Response(padded(size)).body?.pipeThrough(new TransformStream()) ?? null;

const postStream = (size: number) =>
  app.handle(
    new Request(`http://localhost${BASE_PATH}/things/1`, {
      method: "POST",
      headers: { Authorization: "partner_owner", "Content-Type": "application/json" },
      body: stream(size),
    }),
  );

describe("a body", () => {
  test("of 64 KiB is accepted, and one byte more is 413", async () => {
    expect((await send({ body: padded(LIMIT) })).status).toBe(200);
    expect((await send({ body: padded(LIMIT + 1) })).status).toBe(413);
  });

  test("that is streamed without a length has the same limit", async () => {
    expect((await postStream(LIMIT)).status).toBe(200);
    expect((await postStream(LIMIT + 1)).status).toBe(413);
  });

  test("that is not UTF-8 is 400, and a type with parameters and capitals is JSON", async () => {
    const broken = new Uint8Array([...Buffer.from('{"name":"'), 0xff, ...Buffer.from('"}')]);
    expect(code(await send({ body: broken }))).toBe("invalid_json");
    expect((await send({ type: "Application/JSON; charset=utf-8" })).status).toBe(200);
    expect((await send({ type: "application/jsonp" })).status).toBe(415);
    expect((await send({ body: "" })).status).toBe(400);
  });

  test.each(["[]", '"text"', "null", "7"])("that is %s and no object is 422", async (body) => {
    expect(code(await send({ body }))).toBe("validation_failed");
  });

  test("with duplicate keys uses the last one, and every invalid field is named at once", async () => {
    expect((await send({ body: '{"name":1,"name":"b"}' })).text).toBe('{"id":1,"name":"b"}');
    const { text } = await send({ body: '{"name":"","nick":1,"__proto__":{},"constructor":1}' });
    expect(Object.keys(JSON.parse(text).errors).toSorted()).toEqual([
      "__proto__",
      "constructor",
      "name",
      "nick",
    ]);
  });
});

describe("a 422", () => {
  const errorsOf = async (path: string, body: string) =>
    JSON.parse((await send({ path, body })).text).errors;

  test.each([
    ["/things/1?dry=x", '{"name":"ugly","more":1}', ["dry", "more", "name"]],
    ["/things/1?dry=1", '{"name":"wet","more":1}', ["dry", "more"]],
    ["/things/1?dry=1", '{"name":""}', ["name"]],
    ["/things/1?dry=1&dry=2", '{"name":"wet"}', ["dry"]],
    ["/things/1", '{"name":"ugly"}', ["name"]],
    ["/things/1?dry=x", "[]", ["body", "dry"]],
  ])("of %s with %s names %p, by schemas and rules together", async (path, body, fields) => {
    expect(Object.keys(await errorsOf(path, body)).toSorted()).toEqual(fields);
  });

  test("has the schema's message if a rule has one for the same field", async () => {
    expect(await errorsOf("/things/1", '{"name":"ugly"}')).toEqual({ name: ["is ugly"] });
    expect(await errorsOf("/things/1", '{"name":7}')).toEqual({ name: ["expected string"] });
  });

  test("gives way to a 404 if a record is missing", async () => {
    expect((await send({ path: "/things/9", body: '{"name":"ugly"}' })).status).toBe(404);
  });
});

describe("every error", () => {
  test("has message, code and request id, and nothing of the framework", async () => {
    const headers = { "X-Request-Id": "abc-1" };
    const unknown = await send({ path: "/nothing", headers });
    expect(unknown.status).toBe(404);
    expect(unknown.text).toBe('{"message":"Not found.","code":"not_found","request_id":"abc-1"}');
    expect(unknown.headers.get("content-type")).toBe("application/json");
  });

  test.each(["", "partner_owner"])(
    "of an unknown path or method is the same with token %p",
    async (role) => {
      expect((await send({ path: "/nothing", role })).status).toBe(404);
      const wrong = await send({ method: "PATCH", role });
      expect(wrong).toMatchObject({ status: 405 });
      expect(wrong.headers.get("allow")).toBe("POST, DELETE");
    },
  );

  test("a 401 names the scheme, and a denial by role is audited", async () => {
    expect((await send({ role: "" })).headers.get("www-authenticate")).toBe("Bearer");
    denied.length = 0;
    await send({ role: "account_user" });
    expect(denied).toEqual([{ method: "POST", path: "/things/:id", reason: "forbidden" }]);
  });

  test("that is unexpected is a 500 without details, and is logged", async () => {
    logged.length = 0;
    const answer = await send({ body: '{"name":"bug"}' });
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("vault");
    expect(logged).toEqual(["request.failed"]);
  });
});

test.each(["forgotten", "hasty"])(
  "a route that declares no access, or declares it too late, is a 500: %s",
  async (path) => {
    const answer = await send({ path: `/things/${path}`, method: "GET" });
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("secret");
  },
);

test.each([
  ["https://reviews.example", "max-age=31536000"],
  ["http://localhost:3000", null],
])("the service at %s sends the HSTS header %p", async (serverRoot, told) => {
  const options = { clock: systemClock, log, trustedProxies: [], limiter: undefined, looks: [] };
  const served = new Elysia({ normalize: false })
    .use(edge({ ...options, ...NO_FAILURES, serverRoot }))
    .get("/", () => new Response("a page"));
  for (const path of ["/", "/nowhere"]) {
    const { headers } = await served.handle(new Request(`http://localhost${path}`));
    expect(headers.get("strict-transport-security")).toBe(told);
  }
});

const get = (path: string) => app.handle(new Request(`http://localhost${path}`));

describe("a route that takes no body", () => {
  const press = (sent: Sent) => send({ path: "/things/1/press", ...sent });

  test.each<[number, string, Sent]>([
    [202, "none", { body: "", type: "" }],
    [202, "an empty one of any type", { body: "", type: "text/plain" }],
    [202, "an empty object", { body: "{}" }],
    [400, "malformed JSON", { body: "{bad" }],
    [413, "one over the limit", { body: tooLarge }],
    [415, "another type", { body: "{}", type: "text/plain" }],
    [422, "a list", { body: "[]" }],
  ])("returns %d for %s", async (status, _, sent) => {
    expect((await press(sent)).status).toBe(status);
  });

  test("names a field that it does not know", async () => {
    const answer = await press({ body: '{"foo":1}' });
    expect(JSON.parse(answer.text).errors).toEqual({ foo: ["is not a known field"] });
  });
});

describe("every response", () => {
  test.each(["a", "A.b_c-9", "x".repeat(128)])("adopts the request id %s", async (id) => {
    expect((await send({ headers: { "X-Request-Id": id } })).headers.get("x-request-id")).toBe(id);
  });

  test.each(["", "a b", "x".repeat(129), "a\tb", "ü"])("replaces the request id %p", async (id) => {
    const { headers } = await send({ headers: { "X-Request-Id": id } });
    expect(headers.get("x-request-id")).toMatch(/^[0-9A-Z]{26}$/);
  });

  test("forbids caching, with or without a body", async () => {
    const deleted = await send({ method: "DELETE" });
    expect(deleted).toMatchObject({ status: 204, text: "" });
    for (const { headers } of [deleted, await send(), await send({ role: "" })])
      expect(headers.get("cache-control")).toBe("no-store");
  });

  test("of the health pages has a request id and the actual status", async () => {
    const [alive, ready] = [await get("/healthz"), await get("/readyz")];
    expect([alive.status, ready.status]).toEqual([200, 503]);
    expect(await ready.json()).toEqual({
      status: "unavailable",
      checks: { postgres: "ok", redis: "failed" },
    });
    expect(alive.headers.get("x-request-id")).toBeTruthy();
  });
});

const log = { debug() {}, info() {}, warn() {}, error: (event: string) => void logged.push(event) };

const authenticator = {
  async authenticate({ headers }: { headers: Headers }) {
    const role = headers.get("authorization");
    if (role === null) throw new Problem("unauthenticated");
    return { role } as unknown as Principal;
  },
  noteUse() {},
  async recordAccessDenied(_: Principal, __: unknown, details: Record<string, unknown>) {
    denied.push(details);
  },
};

const noKeys = () => Promise.reject(new Error("No request of these tests has a key."));
const keyed = {
  find: noKeys,
  keep: () => {
    throw new Error("No request of these tests has a key.");
  },
};
const NO_FAILURES = {
  failures: { isStoreFailure: () => false, isOutcomeUnknown: () => false },
  getHasEffect: new Set<string>(),
};

const Body = Type.Object({ name: Type.String({ minLength: 1 }) }, { additionalProperties: false });
const Query = Type.Object({ dry: Type.Optional(Type.Integer()) });
const thing = loads("thing", async ({ params }) => {
  if (params["id"] === "2") throw new Problem("forbidden");
  if (params["id"] !== "1") throw new Problem("not_found");
  return { id: 1 };
});
const things = new Elysia({ prefix: `${BASE_PATH}/things` })
  .use(checks(authenticator, keyed))
  .macro(thing)
  .post(
    "/:id",
    ({ body, thing: found }) => {
      if (body.name === "taken") throw new Problem("slot_occupied");
      if (body.name === "bug") throw new Error("select secret from vault");
      return { ...found, name: body.name };
    },
    {
      access: {
        takes: "any",
        refuse: ({ role }: Principal) => (role === "partner_owner" ? undefined : "forbidden"),
      },
      thing: true,
      body: Body,
      query: Query,
      rules: ({ body, query, thing: found }: RuleInput<typeof Body, typeof Query> & Thing) => ({
        name: body.name === "ugly" || body.name === undefined ? "is ugly" : undefined,
        dry: query.dry === found.id && body.name === "wet" ? "does not go with wet" : undefined,
      }),
      response: { 200: Type.Object({ id: Type.Integer(), name: Type.String() }) },
    },
  )
  .post(
    "/:id/press",
    ({ set }) => {
      set.status = 202;
    },
    { public: true, body: NO_FIELDS },
  )
  .delete("/:id", ({ status }) => status(204, undefined), { public: true })
  .get("/forgotten", () => "a secret")
  .get("/hasty", ({ thing: found }) => found, {
    thing: true,
    access: { takes: "any", refuse: () => undefined },
  });

const app = new Elysia({ normalize: false })
  .use(
    edge({
      clock: systemClock,
      log,
      serverRoot: "http://localhost:3000",
      trustedProxies: [],
      limiter: undefined,
      looks: [],
      ...NO_FAILURES,
    }),
  )
  .use(things)
  .use(
    health(async () => ({
      status: "unavailable" as const,
      checks: { postgres: "ok", redis: "failed" },
    })),
  );
refuseOtherMethods(app, new Set());

const LIMIT = 64 * 1024;
const logged: string[] = [];
const denied: unknown[] = [];
const tooLarge = "x".repeat(LIMIT + 1);

interface Thing {
  readonly thing: { readonly id: number };
}

interface Sent {
  path?: string;
  role?: string | undefined;
  type?: string;
  body?: string | Uint8Array<ArrayBuffer>;
  method?: string;
  headers?: Record<string, string>;
}

/** Sends a valid request, except for the given parts. */
async function send(sent: Sent = {}) {
  const { path = "/things/1", role = "partner_owner", type = "application/json" } = sent;
  const { method = "POST", body = '{"name":"a"}', headers } = sent;
  const response = await app.handle(
    new Request(`http://localhost${BASE_PATH}${path}`, {
      method,
      headers: { ...(role !== "" && { Authorization: role }), "Content-Type": type, ...headers },
      ...(method !== "GET" && { body }),
    }),
  );
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

const code = (answer: { text: string }) => JSON.parse(answer.text).code;
