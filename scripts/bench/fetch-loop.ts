// The baseline of the benchmark: sends the dispatcher's POSTs, signed, with fetch alone, one at a time per host.
//
//   bun scripts/bench/fetch-loop.ts <deliveries> <url> [<url> …]
import { createHmac } from "node:crypto";

const [total = "0", ...urls] = process.argv.slice(2);
const each = Math.ceil(Number(total) / urls.length);
const secret = "0123456789abcdef".repeat(4);
const padding = "x".repeat(500);

async function loop(url: string): Promise<void> {
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
    const response = await fetch(url, {
      method: "POST",
      body,
      redirect: "manual",
      headers: {
        "Content-Type": "application/json",
        "X-SVC-Event": "review_received",
        "X-SVC-Delivery": "01JWNB9PR0ZV8X2D3F4G5H6J7K",
        "X-SVC-Attempt": "1",
        "X-SVC-Signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      },
    });
    await response.arrayBuffer();
  }
}

const startedAt = performance.now();
await Promise.all(urls.map(loop));
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({
    deliveries: each * urls.length,
    seconds,
    cpuUs: (user + system) / (each * urls.length),
  }),
);
