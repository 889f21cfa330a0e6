// A second baseline: sends the same POSTs with our own HTTP client and nothing else of the dispatcher, one at a time
// per host.
//
//   bun scripts/bench/client-loop.ts <deliveries> <url> [<url> …]
import { hmacSha256Hex } from "../../src/lib/secrets.ts";
import { HttpClient } from "../../dispatcher/http/client.ts";
import { checkWebhookUrl, parseNetworks } from "../../src/lib/egress.ts";

const [total = "0", ...urls] = process.argv.slice(2);
const each = Math.ceil(Number(total) / urls.length);
const secret = "0123456789abcdef".repeat(4);
const padding = "x".repeat(500);
const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
const client = new HttpClient({ policy });

async function loop(url: string): Promise<void> {
  const check = checkWebhookUrl(url, policy);
  if (check.kind !== "target") throw new Error(`${url}: ${check.kind}`);
  for (let n = 0; n < each; n++) {
    const body = JSON.stringify({
      event: "review_received",
      event_id: `01JWNB9PR0ZV8X2D3F4G${String(n).padStart(6, "0")}`,
      occurred_at: "2026-06-01T12:00:00.000+00:00",
      delivered_at: new Date().toISOString(),
      partner: { id: 1 },
      actor: { type: "system", id: null, name: "google" },
      review: { id: n, external_review_id: `ext-${n}`, store_id: 1, rate: 4, reviewer: "Ada" },
      metadata: { rate: 4, padding },
    });
    const headers = {
      "Content-Type": "application/json",
      "X-SVC-Event": "review_received",
      "X-SVC-Delivery": "01JWNB9PR0ZV8X2D3F4G5H6J7K",
      "X-SVC-Attempt": "1",
      "X-SVC-Signature": hmacSha256Hex(secret, body),
    };
    await client.post(check.target, { headers, body });
  }
}

const startedAt = performance.now();
await Promise.all(urls.map(loop));
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage();
const deliveries = each * urls.length;
console.log(JSON.stringify({ deliveries, seconds, cpuUs: (user + system) / deliveries }));
process.exit(0);
