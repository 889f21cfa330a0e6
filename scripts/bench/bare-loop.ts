// A baseline: sends signed POSTs like the dispatcher's, one at a time per host, and does nothing else.
//
//   bun scripts/bench/bare-loop.ts fetch|client|node|undici <deliveries> <url> [<url> …]
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { LookupFunction } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

import { HttpClient } from "../../dispatcher/http/client.ts";
import { checkWebhookUrl, parseNetworks } from "../../src/lib/egress.ts";
import { ROOT } from "../install/install.ts";

const [sender, total = "0", ...urls] = process.argv.slice(2);
const each = Math.ceil(Number(total) / urls.length);
const secret = "0123456789abcdef".repeat(4);
const padding = "x".repeat(500);
const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
const { BENCH_CA: caFile } = process.env;
const ca = caFile === undefined ? [] : [readFileSync(caFile, "utf8")];
const client = new HttpClient({ policy, ca });

async function withFetch(url: string, headers: Record<string, string>, body: string) {
  const response = await fetch(url, { method: "POST", body, redirect: "manual", headers });
  await response.arrayBuffer();
}

async function withClient(url: string, headers: Record<string, string>, body: string) {
  const check = checkWebhookUrl(url, policy);
  if (check.kind !== "target") throw new Error(`${url}: ${check.kind}`);
  const { kind } = await client.post(check.target, { headers, body });
  if (kind !== "answered") throw new Error(`${url}: ${kind}`);
}

/** Resolves each name to the checked address, as every client for checked addresses must do. */
const pinned: LookupFunction = (host, { all }, done) =>
  all === true ? done(null, [{ address: host, family: 4 }]) : done(null, host, 4);
const options = { keepAlive: true, maxFreeSockets: 1_024, lookup: pinned, ca };
const agents = { "http:": new http.Agent(options), "https:": new https.Agent(options) };

async function withNode(url: string, headers: Record<string, string>, body: string) {
  const { request } = url.startsWith("https:") ? https : http;
  const agent = agents[url.startsWith("https:") ? "https:" : "http:"];
  const length = { "Content-Length": String(Buffer.byteLength(body)) };
  await new Promise((resolve, reject) => {
    request(url, { method: "POST", agent, headers: { ...headers, ...length } }, (response) => {
      buffer(response).then(resolve, reject);
    })
      .on("error", reject)
      .end(body);
  });
}

interface Undici {
  Agent: new (options: object) => object;
  request(url: string, options: object): Promise<{ body: { arrayBuffer(): Promise<ArrayBuffer> } }>;
}

// Bun replaces `import "undici"` by a shim that ignores the Agent, so the package is loaded by its path.
const undici: Undici | undefined =
  sender === "undici" ? await import(join(ROOT, "node_modules/undici/index.js")) : undefined;
const dispatcher = undici && new undici.Agent({ connect: { lookup: pinned, ca } });

async function withUndici(url: string, headers: Record<string, string>, body: string) {
  const response = await undici?.request(url, { method: "POST", headers, body, dispatcher });
  await response?.body.arrayBuffer();
}

const SENDERS = { fetch: withFetch, client: withClient, node: withNode, undici: withUndici };

async function loop(url: string): Promise<void> {
  const post =
    SENDERS[sender === "fetch" || sender === "node" || sender === "undici" ? sender : "client"];
  for (let n = 0; n < each; n++) {
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
      metadata: { rate: 4, padding },
    });
    const headers = {
      "Content-Type": "application/json",
      "X-SVC-Event": "review_received",
      "X-SVC-Delivery": "01JWNB9PR0ZV8X2D3F4G5H6J7K",
      "X-SVC-Attempt": "1",
      "X-SVC-Signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    };
    await post(url, headers, body);
  }
}

const startedAt = performance.now();
await Promise.all(urls.map(loop));
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage();
const deliveries = each * urls.length;
console.log(JSON.stringify({ deliveries, seconds, cpuUs: (user + system) / deliveries }));
process.exit(0);
