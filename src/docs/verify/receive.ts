// WEBHOOK_SECRET=... PORT=4000 bun receive.ts
import { isSigned } from "./verify.ts";

const secret = process.env["WEBHOOK_SECRET"] ?? "";
if (secret === "") throw new Error("Set WEBHOOK_SECRET to the subscription's secret.");
const handled = new Set<string>(); // keep these in a table of yours

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env["PORT"] ?? 4000),
  async fetch(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    return new Response(null, { status: answer(request.headers, body) });
  },
});

function answer(headers: Headers, body: Uint8Array): number {
  const signatures = ["x-svc-signature", "x-svc-signature-previous"].map((name) =>
    headers.get(name),
  );
  if (!signatures.some((one) => isSigned(secret, body, one ?? undefined))) return 401;
  const event = JSON.parse(new TextDecoder().decode(body));
  if (Math.abs(Date.now() - Date.parse(event.delivered_at)) > 300_000) return 401;
  if (handled.has(event.event_id)) return 200;
  console.log(event.event, event.event_id); // put it into a queue of yours
  handled.add(event.event_id);
  return 204;
}
