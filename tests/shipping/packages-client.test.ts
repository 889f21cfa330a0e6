// Uses the clients of the packages in TypeScript and Python against the product, behind a proxy that makes faults.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import { ApiError, oauthToken, ReviewRelay } from "../../src/sdk/typescript/src/index.ts";
import { redeem } from "../../src/sdk/typescript/src/oauth.ts";
import { PASSWORD } from "../support/api.ts";
import { fixture } from "../support/fixture.ts";
import { addClient, credentialsOf, postForm } from "../support/oauth.ts";
import { startProduct } from "../support/product.ts";
import { lacks } from "../support/needs.ts";

test("the client in TypeScript reads all pages, repeats safe requests alone, and refreshes tokens once", async () => {
  await expectFlow(flowInTypescript);
});

test.skipIf(lacks("python"))("the client in Python does the same", async () => {
  await expectFlow(async (given) => {
    const child = Bun.spawn(["python3", join(import.meta.dir, "flow.py")], {
      env: { ...process.env, PYTHONPATH: join(import.meta.dir, "../../src/sdk/python") },
      stdin: Buffer.from(JSON.stringify(given)),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect([await child.exited, err]).toEqual([0, ""]);
    return JSON.parse(out);
  });
});

test("a stream and a refresh do not follow a redirect, and a signal ends the wait for a token", async () => {
  const redirected: string[] = [];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      redirected.push(new URL(request.url).pathname);
      return new Response(null, { status: 307, headers: { Location: "http://127.0.0.2/x?y" } });
    },
  });
  const { origin } = server.url;
  const expected = { status: 307, message: expect.stringContaining("http://127.0.0.2.") };
  const stream = new ReviewRelay({ server: origin }).open("GET /partner/audit-log/export");
  expect(await stream.catch((error: unknown) => error)).toMatchObject(expected);
  const refresh = redeem(`${origin}/`, { grant_type: "refresh_token" });
  expect(await refresh.catch((error: unknown) => error)).toMatchObject(expected);
  expect(redirected).toEqual(["/api/v1/partner/audit-log/export", "/oauth/token"]);
  const waiting = new ReviewRelay({ server: origin, token: () => new Promise(() => {}) });
  const signal = AbortSignal.timeout(10);
  const ended = waiting.request("GET /verify-token", { signal });
  expect(await ended.catch((error: unknown) => error)).toBe(signal.reason);
});

test("the time limit is that of a request and not of the wait for its token", async () => {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json("ok") });
  const token = async () => {
    await Bun.sleep(400);
    return "token";
  };
  const relay = new ReviewRelay({ server: server.url.origin, token, timeoutS: 0.3, retries: 0 });
  expect(await relay.request<"GET /x">("GET /x")).toBe("ok");
});

/** The results of a client's flow. */
interface Flow {
  /** Ids of reviews, read in pages of two. */
  readonly reviews: number;
  /** Whether the creation, whose first response was lost, returned a secret. */
  readonly hasSecret: boolean;
  /** The label of the subscription that a read found, which was answered 503 at first. */
  readonly label: string;
  /**
   * Errors of a test event that was answered 503, a read whose `Retry-After` is an hour, one that always fails, and a deletion
   * whose outcome was unknown, and a read that was redirected. The creation after it, whose outcome was unknown too, has none.
   */
  readonly errors: readonly string[];
  /** The ids that the client refuses in a path, because they would name another one. */
  readonly refused: readonly (string | null)[];
  /** The roles that four requests at the same time found with a refreshed token, and one that was answered 401. */
  readonly roles: readonly string[];
}

const product = fixture(startProduct);
const requests: { readonly fault: string; readonly method: string; readonly key: unknown }[] = [];
const proxy = createServer((request, response) => void forward(request, response));
beforeAll(async () => {
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  await product.emit(5);
});
afterAll(() => proxy.close());

interface Given {
  readonly proxy: string;
  readonly token: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly refreshToken: string;
}

async function expectFlow(run: (given: Given) => Promise<Flow>): Promise<void> {
  requests.length = 0;
  const { email } = product.tenants.partners[0].owner;
  const api = product.api();
  const token = await api.login(email);
  const known = await api.call("GET", "/partner/webhooks", { token });
  for (const { id } of known.body["data"] as { id: string }[])
    await api.call("DELETE", `/partner/webhooks/${id}`, { token });
  const client = await addClient(product.database.db, { firstParty: true });
  const { body: tokens } = await postForm(api, "/oauth/token", {
    grant_type: "password",
    username: email,
    password: PASSWORD,
    ...credentialsOf(client),
  });
  const { port } = proxy.address() as AddressInfo;
  const flow = await run({
    proxy: `http://127.0.0.1:${port}`,
    token,
    clientId: client.clientId,
    clientSecret: client.secret,
    refreshToken: String(tokens["refresh_token"]),
  });
  expect(flow).toEqual({
    reviews: 5,
    hasSecret: true,
    label: "Of a package",
    errors: [
      "503 unavailable",
      "429 rate_limited",
      "503 unavailable",
      "503 outcome_unknown",
      "307 ",
      "none",
    ],
    refused: [...OTHER_PATHS, null],
    roles: Array.from({ length: 5 }, () => "partner_owner"),
  });
  expect(requests.filter(({ fault }) => fault === "dots")).toEqual([]);
  const methods = (fault: string) =>
    requests.filter((one) => one.fault === fault).map(({ method }) => method);
  expect(methods("none")).toEqual(["GET", "GET", "GET"]);
  expect(methods("lost")).toEqual(["POST", "POST"]);
  const keys = requests.filter(({ fault }) => fault === "lost").map(({ key }) => key);
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(keys[1]).toBe(keys[0]);
  expect(methods("busy")).toEqual(["GET", "GET"]);
  expect(methods("broken")).toEqual(["GET", "GET"]);
  expect(methods("redirect")).toEqual(["GET"]);
  expect(methods("busy-post")).toEqual(["POST"]);
  expect(methods("limited")).toEqual(["GET"]);
  expect(methods("always")).toEqual(["GET", "GET", "GET", "GET"]);
  expect(methods("expired")).toEqual(["GET", "GET"]);
  expect(methods("unknown-delete")).toEqual(["DELETE"]);
  expect(methods("unknown")).toEqual(["POST", "POST"]);
  const refreshes = requests.filter(({ fault, method }) => fault === "oauth" && method === "POST");
  expect(refreshes).toHaveLength(2);
}

/** Ids that would turn the path of a subscription into that of the list, or of something above it. */
const OTHER_PATHS = ["", ".", ".."];

/** Forwards a request. The first part of its path names the fault that the first request with it gets. */
async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url = "", method = "", headers } = request;
  const [, fault = "", path = ""] = /^\/([\w-]+)(\/.*)$/.exec(url) ?? [];
  const isFirst = requests.every((one) => one.fault !== fault);
  requests.push({ fault, method, key: headers["idempotency-key"] });
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const refuse = (status: number, code: string, retryAfter?: string) =>
    response
      .writeHead(status, retryAfter === undefined ? {} : { "Retry-After": retryAfter })
      .end(JSON.stringify({ message: "Later.", code, request_id: "01" }));
  if (isFirst && fault.startsWith("busy")) return void refuse(503, "unavailable", "1");
  if (isFirst && fault === "broken") {
    // The body of the error breaks off.
    response.writeHead(503, { "Content-Length": "100" }).write("{");
    return void setTimeout(() => request.socket.destroy(), 50);
  }
  if (fault === "redirect")
    return void response.writeHead(307, { Location: `${product.root}${path}` }).end();
  if (isFirst && fault === "expired") return void refuse(401, "unauthenticated", "0");
  if (fault === "always") return void refuse(503, "unavailable", "0");
  if (fault === "limited") return void refuse(429, "rate_limited", "3600");
  const { authorization, "content-type": type, "idempotency-key": key } = headers;
  const answer = await fetch(product.root + path, {
    method,
    headers: Object.entries({ authorization, "content-type": type, "idempotency-key": key }).filter(
      (one): one is [string, string] => typeof one[1] === "string",
    ),
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
  const text = await answer.text();
  // The product has handled the request, but the client gets no response.
  if (isFirst && fault === "lost") return void request.socket.destroy();
  if (isFirst && fault.startsWith("unknown")) return void refuse(503, "outcome_unknown");
  response.writeHead(answer.status, { "Content-Type": "application/json" }).end(text);
}

async function flowInTypescript(given: Given): Promise<Flow> {
  const at = (fault: string) =>
    new ReviewRelay({ server: `${given.proxy}/${fault}`, token: given.token });
  const reviews = await at("none")
    .pages("GET /partner/reviews", { query: { limit: 2 } })
    .all();
  const subscription = {
    label: "Of a package",
    webhook_url: "http://127.0.0.1:9/hook",
    delivery_kind: "immediate",
  };
  const create = (relay: ReviewRelay) =>
    relay.request("POST /partner/webhooks", {
      body: subscription,
      idempotencyKey: crypto.randomUUID(),
    });
  const made = await create(at("lost"));
  const path = { id: made.id };
  const read = (relay: ReviewRelay, id: string = made.id) =>
    relay.request("GET /partner/webhooks/{id}", { path: { id } });
  const { label } = await read(at("busy"));
  const errorOf = async (run: Promise<unknown>) => {
    const error = await run.catch((one: unknown) => one);
    return error instanceof ApiError ? `${error.status} ${error.code}` : "none";
  };
  await read(at("broken"));
  const refused: (string | null)[] = [];
  for (const id of [...OTHER_PATHS, null])
    await at("dots")
      .request("GET /partner/webhooks/{id}", { path: { id } as never })
      .catch((error: unknown) => {
        if (error instanceof TypeError) refused.push(id);
      });
  const server = `${given.proxy}/oauth`;
  const token = oauthToken({ ...given, server, store: async () => {} });
  const signedIn = new ReviewRelay({ server, token });
  const whoami = (relay: ReviewRelay) => relay.request("GET /verify-token");
  const users = await Promise.all(Array.from({ length: 4 }, () => whoami(signedIn)));
  users.push(await whoami(new ReviewRelay({ server: `${given.proxy}/expired`, token })));
  return {
    reviews: new Set(reviews.map((one) => (one as { id: number }).id)).size,
    hasSecret: /^[0-9a-f]{64}$/.test(made.secret),
    label,
    errors: [
      await errorOf(at("busy-post").request("POST /partner/webhooks/{id}/test", { path })),
      await errorOf(read(at("limited"))),
      await errorOf(read(at("always"))),
      await errorOf(at("unknown-delete").request("DELETE /partner/webhooks/{id}", { path })),
      await errorOf(read(at("redirect"))),
      await errorOf(create(at("unknown"))),
    ],
    refused,
    roles: users.map((one: { user: { role: string } }) => one.user.role),
  };
}
