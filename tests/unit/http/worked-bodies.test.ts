import { afterAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";

import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../../src/http/access.ts";
import { checks } from "../../../src/http/checks.ts";
import { edge } from "../../../src/http/edge.ts";
import { loads } from "../../../src/http/request-state.ts";
import type { Principal } from "../../../src/http/principal.ts";
import type { RuleInput } from "../../../src/http/rules.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { Problem } from "../../../src/lib/problem.ts";

/*
 * A process works on 8 MiB of large bodies at a time. Each of these requests has almost 1 MiB, so the ninth and later
 * ones are answered only if the earlier ones have ended their work.
 */

const REQUESTS = 12;

test.each<[number, string, Sent]>([
  [200, "is accepted", {}],
  [200, "gets a stream", { name: "stream" }],
  [200, "gets a stream that fails", { name: "broken stream" }],
  [201, "gets the response that is stored for its key", { key: "stored" }],
  [400, "is no JSON", { raw: `{${"x".repeat(1_000_000)}` }],
  [401, "has no token", { role: "" }],
  [403, "is not permitted", { role: "account_user" }],
  [404, "names nothing", { id: "9" }],
  [409, "is refused by its handler", { name: "taken" }],
  [413, "has a body that is too large", { name: "x".repeat(2 ** 20) }],
  [415, "has another content type", { type: "text/plain" }],
  [422, "has an invalid field", { name: "" }],
  [422, "breaks a rule", { name: "ugly" }],
  [422, "has a key of another request", { key: "other" }],
  [500, "meets a bug", { name: "bug" }],
  [500, "meets a bug in the loader", { id: "bug" }],
  [500, "meets a bug in the look-up of its key", { key: "bug" }],
])("a request ends the work on its body with a %d if it %s", async (status, _, sent) => {
  for (let n = 0; n < REQUESTS; n++) {
    const response = await fetch(urlOf(sent), initOf(sent));
    expect(response.status).toBe(status);
    await response.text().catch(() => {});
  }
  expect((await fetch(urlOf({}), initOf({}))).status).toBe(200);
});

test("a request ends the work on its body if its client leaves while the body arrives", async () => {
  for (let n = 0; n < REQUESTS; n++) {
    const socket = await open();
    socket.write(`${headOf({})}\r\n{"text":"`);
    socket.write("x".repeat(500_000));
    await Bun.sleep(1);
    socket.destroy();
  }
  expect((await fetch(urlOf({}), initOf({}))).status).toBe(200);
});

test("requests end the work on their bodies if their clients leave while these are worked on or wait", async () => {
  const sockets: Socket[] = [];
  for (let n = 0; n < REQUESTS; n++) {
    const socket = await open();
    socket.write(`${headOf({ name: "slow" })}\r\n${bodyOf({ name: "slow" })}`);
    sockets.push(socket);
  }
  while (working.length < 8) await Bun.sleep(1);
  // The first nine of 1 MiB less a little are below the limit together with none other.
  expect(working.length).toBeLessThan(REQUESTS);
  for (const socket of sockets) socket.destroy();
  await Bun.sleep(10);
  const left = fetch(urlOf({}), initOf({}));
  for (let ended = 0; ended < REQUESTS; ended++) {
    while (working.length === 0) await Bun.sleep(1);
    working.shift()?.();
  }
  expect((await left).status).toBe(200);
});

const working: (() => void)[] = [];
const silent = { debug() {}, info() {}, warn() {}, error() {} };

const authenticator = {
  async authenticate({ headers }: { headers: Headers }) {
    const role = headers.get("authorization");
    if (role === null) throw new Problem("unauthenticated");
    return { role, userId: 1 } as unknown as Principal;
  },
  noteUse() {},
  async recordAccessDenied() {},
};
const keyed = {
  async find({ key, digest }: { key: string; digest: string }) {
    if (key === "bug") throw new Error("a bug");
    return { digest: key === "stored" ? digest : "another", body: { id: 1 } };
  },
  keep: () => {
    throw new Error("No request of these tests is stored.");
  },
};

const Body = Type.Object({ name: Type.String({ minLength: 1 }), text: Type.Array(Type.String()) });
const thing = loads("thing", async ({ params }) => {
  if (params["id"] === "bug") throw new Error("a bug");
  if (params["id"] !== "1") throw new Problem("not_found");
  return { id: 1 };
});
const things = new Elysia({ prefix: `${BASE_PATH}/things` })
  .use(checks(authenticator, keyed))
  .macro(thing)
  .post(
    "/:id",
    async ({ body: { name } }): Promise<unknown> => {
      if (name === "taken") throw new Problem("slot_occupied");
      if (name === "bug") throw new Error("a bug");
      if (name === "slow") await new Promise<void>((resolve) => void working.push(resolve));
      if (name.endsWith("stream")) return new Response(streamOf(name === "stream"));
      return { id: 1 };
    },
    {
      access: {
        takes: "any",
        bodyLimit: 2 ** 20,
        refuse: ({ role }: Principal) => (role === "partner_owner" ? undefined : "forbidden"),
      },
      thing: true,
      body: Body,
      rules: ({ body }: RuleInput<typeof Body>) => ({
        name: body.name === "ugly" ? "is ugly" : undefined,
      }),
      response: { 200: Type.Unknown(), 201: Type.Object({ id: Type.Integer() }) },
    },
  );

const app = new Elysia({ normalize: false })
  .use(
    edge({
      clock: systemClock,
      log: silent,
      serverRoot: "http://localhost:3000",
      trustedProxies: [],
      limiter: undefined,
      looks: [],
      failures: { isStoreFailure: () => false, isOutcomeUnknown: () => false },
      getHasEffect: new Set<string>(),
    }),
  )
  .use(things)
  .listen(0);

afterAll(() => app.stop(true));

interface Sent {
  readonly id?: string;
  readonly name?: string;
  readonly raw?: string;
  readonly role?: string;
  readonly type?: string;
  readonly key?: string;
}

const PIECES = Array.from({ length: 5 }, () => "x".repeat(205_000));
const port = () => app.server?.port ?? 0;
const pathOf = ({ id = "1" }: Sent) => `${BASE_PATH}/things/${id}`;
const urlOf = (sent: Sent) => `http://127.0.0.1:${port()}${pathOf(sent)}`;
const bodyOf = ({ raw, name = "a" }: Sent) => raw ?? JSON.stringify({ name, text: PIECES });

function headersOf({ role = "partner_owner", type = "application/json", key }: Sent) {
  return {
    "Content-Type": type,
    ...(role !== "" && { Authorization: role }),
    ...(key !== undefined && { "Idempotency-Key": key }),
  };
}

function initOf(sent: Sent): RequestInit {
  return { method: "POST", headers: headersOf(sent), body: bodyOf(sent) };
}

function headOf(sent: Sent): string {
  const lines = Object.entries({
    ...headersOf(sent),
    Host: "127.0.0.1",
    "Content-Length": bodyOf(sent).length,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${pathOf(sent)} HTTP/1.1\r\n${lines.join("")}`;
}

async function open(): Promise<Socket> {
  const socket = connect(port(), "127.0.0.1");
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return socket;
}

function streamOf(isWhole: boolean): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode("a")),
    async pull(controller) {
      await Bun.sleep(1);
      if (isWhole) controller.close();
      else controller.error(new Error("broken"));
    },
  });
}
