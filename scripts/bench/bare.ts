// Baselines in processes of their own: a loop that sends signed POSTs like the dispatcher's, one at a time per host, and
// does nothing else; and an Elysia route without a check or a database. `bareLoop` and `bareRoute` run this file:
//
//   bun scripts/bench/bare.ts fetch|client|node|undici <deliveries> <url> [<url> …]
//   bun scripts/bench/bare.ts route
import { fork, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { LookupFunction } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

import { HttpClient } from "../../dispatcher/http/client.ts";
import { checkWebhookUrl, parseNetworks } from "../../src/lib/egress.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { ROOT } from "../install/install.ts";

interface Sent {
  readonly deliveries: number;
  readonly seconds: number;
  /** CPU time in microseconds of a POST. */
  readonly cpuUs: number;
}

export type Sender = "fetch" | "client" | "node" | "undici";

/**
 * Runs the loop and waits for it asynchronously: `spawnSync` would block this process, and its connection to Redis would
 * time out.
 */
export async function bareLoop(
  sender: Sender,
  deliveries: number,
  urls: readonly string[],
  { stop, caFile }: { readonly stop?: AbortSignal; readonly caFile?: string | undefined } = {},
): Promise<Sent> {
  const child = spawn(process.execPath, [import.meta.path, sender, String(deliveries), ...urls], {
    env: {
      PATH: process.env["PATH"] ?? "",
      // `fetch` has no other way to accept the certificate of the receivers.
      ...(sender === "fetch" && { NODE_TLS_REJECT_UNAUTHORIZED: "0" }),
      ...(caFile !== undefined && { BENCH_CA: caFile }),
      BUN_CONFIG_MAX_HTTP_REQUESTS: "4096",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  stop?.addEventListener("abort", end);
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  stop?.removeEventListener("abort", end);
  if (text !== "") return JSON.parse(text.trim().split("\n").at(-1) ?? "");
  // The signal that stopped this process may also have stopped the child.
  if (stop?.aborted === true)
    return { deliveries: Number.NaN, seconds: Number.NaN, cpuUs: Number.NaN };
  throw new Error("The bare loop failed.");
}

/** Starts the route, which ends with this process. Returns its root URL. */
export function bareRoute(): Promise<string> {
  const child = fork(import.meta.path, ["route"]);
  return new Promise((done) =>
    child.once("message", (message: { root: string }) => done(message.root)),
  );
}

type Post = (url: string, headers: Record<string, string>, body: string) => Promise<unknown>;

async function postOf(sender: Sender, ca: string[]): Promise<Post> {
  if (sender === "client") return clientPost(ca);
  if (sender === "node") return nodePost(ca);
  if (sender === "undici") return undiciPost(ca);
  return async (url, headers, body) => {
    const send = () => fetch(url, { method: "POST", body, redirect: "manual", headers });
    let response;
    try {
      response = await send();
    } catch (error) {
      // Repeats a request once if its connection closed before an answer, which must not end the measurement.
      if (fieldsOf(error)["code"] !== "ECONNRESET") throw error;
      response = await send();
    }
    await response.arrayBuffer();
  };
}

function clientPost(ca: string[]): Post {
  const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
  const client = new HttpClient({ policy, ca });
  return async (url, headers, body) => {
    const check = checkWebhookUrl(url, policy);
    if (check.kind !== "target") throw new Error(`${url}: ${check.kind}`);
    const { kind } = await client.post(check.target, { headers, body });
    if (kind !== "answered") throw new Error(`${url}: ${kind}`);
  };
}

/** Resolves each name to the checked address, as every client for checked addresses must do. */
const pinned: LookupFunction = (host, { all }, done) =>
  all === true ? done(null, [{ address: host, family: 4 }]) : done(null, host, 4);

function nodePost(ca: string[]): Post {
  const options = { keepAlive: true, maxFreeSockets: 1_024, lookup: pinned, ca };
  const agents = { http: new http.Agent(options), https: new https.Agent(options) };
  return (url, headers, body) => {
    const [{ request }, agent] = url.startsWith("https:")
      ? [https, agents.https]
      : [http, agents.http];
    const length = { "Content-Length": String(Buffer.byteLength(body)) };
    return new Promise((resolve, reject) => {
      request(url, { method: "POST", agent, headers: { ...headers, ...length } }, (response) => {
        buffer(response).then(resolve, reject);
      })
        .on("error", reject)
        .end(body);
    });
  };
}

interface Undici {
  Agent: new (options: object) => object;
  request(url: string, options: object): Promise<{ body: { arrayBuffer(): Promise<ArrayBuffer> } }>;
}

async function undiciPost(ca: string[]): Promise<Post> {
  // Bun replaces `import "undici"` by a shim that ignores the Agent, so the package is loaded by its path.
  const undici: Undici = await import(join(ROOT, "node_modules/undici/index.js"));
  const dispatcher = new undici.Agent({ connect: { lookup: pinned, ca } });
  return async (url, headers, body) => {
    const response = await undici.request(url, { method: "POST", headers, body, dispatcher });
    await response.body.arrayBuffer();
  };
}

const SECRET = "0123456789abcdef".repeat(4);
const PADDING = "x".repeat(500);

async function sendTo(url: string, count: number, post: Post): Promise<void> {
  for (let n = 0; n < count; n++) {
    const body = JSON.stringify({
      event: "review_received",
      event_id: `01JWNB9PR0ZV8X2D3F4G${String(n).padStart(6, "0")}`,
      occurred_at: "2026-06-01T12:00:00.000+00:00",
      delivered_at: new Date().toISOString(),
      partner: { id: 1 },
      actor: { type: "system", id: null, name: "google" },
      review: {
        id: n,
        external_review_id: `ext-${n}`,
        store_id: 1,
        review_site_id: 1,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada",
      },
      metadata: { rate: 4, padding: PADDING },
    });
    const headers = {
      "Content-Type": "application/json",
      "X-SVC-Event": "review_received",
      "X-SVC-Delivery": "01JWNB9PR0ZV8X2D3F4G5H6J7K",
      "X-SVC-Attempt": "1",
      "X-SVC-Signature": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
    };
    await post(url, headers, body);
  }
}

async function runLoop(sender: Sender, total: number, urls: readonly string[]): Promise<Sent> {
  const { BENCH_CA: caFile } = process.env;
  const post = await postOf(sender, caFile === undefined ? [] : [readFileSync(caFile, "utf8")]);
  const each = Math.ceil(total / urls.length);
  const startedAt = performance.now();
  await Promise.all(urls.map((url) => sendTo(url, each, post)));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage();
  const deliveries = each * urls.length;
  return { deliveries, seconds, cpuUs: (user + system) / deliveries };
}

if (import.meta.main) {
  const [what, total, ...urls] = process.argv.slice(2);
  if (what === "route") {
    // The loops do not load Elysia, because their CPU time is measured from the start.
    const { Elysia } = await import("elysia");
    const app = new Elysia()
      .get("/", () => ({ status: "ok" }))
      .listen({ port: 0, hostname: "127.0.0.1" });
    process.send?.({ root: `http://127.0.0.1:${app.server?.port}` });
    process.on("disconnect", () => process.exit(0));
  } else {
    console.log(JSON.stringify(await runLoop(what as Sender, Number(total), urls)));
    process.exit(0);
  }
}
