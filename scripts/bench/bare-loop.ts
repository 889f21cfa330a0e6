// A baseline: sends the dispatcher's POSTs, signed, and nothing else, one at a time per host.
//
//   bun scripts/bench/bare-loop.ts fetch|client <deliveries> <url> [<url> …]
import { createHmac } from "node:crypto";

import { HttpClient } from "../../dispatcher/http/client.ts";
import { checkWebhookUrl, parseNetworks } from "../../src/lib/egress.ts";

const [sender, total = "0", ...urls] = process.argv.slice(2);
const each = Math.ceil(Number(total) / urls.length);
const secret = "0123456789abcdef".repeat(4);
const padding = "x".repeat(500);
const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
const client = new HttpClient({ policy });

async function withFetch(url: string, headers: Record<string, string>, body: string) {
  const response = await fetch(url, { method: "POST", body, redirect: "manual", headers });
  await response.arrayBuffer();
}

async function withClient(url: string, headers: Record<string, string>, body: string) {
  const check = checkWebhookUrl(url, policy);
  if (check.kind !== "target") throw new Error(`${url}: ${check.kind}`);
  await client.post(check.target, { headers, body });
}

async function loop(url: string): Promise<void> {
  const post = sender === "fetch" ? withFetch : withClient;
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
