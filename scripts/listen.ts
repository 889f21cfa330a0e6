// A receiver for development: shows every delivery, checks its signature, and misbehaves if told to.
//   bun run listen --port 4000 --secret <secret>
import { createHmac, timingSafeEqual } from "node:crypto";
import { parseArgs } from "node:util";

const HELP = `Receives webhooks on this machine and shows them.

  --port 4000     where to listen (127.0.0.1)
  --secret TEXT   the subscription's secret; without it signatures are shown, not checked
  --status 200    the answer's status
  --fail N        answer the first N deliveries with 500
  --slow MS       wait this long before each answer
  --hang          never answer
  --plain         the body as it came, not laid out`;

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "4000" },
    secret: { type: "string" },
    status: { type: "string", default: "200" },
    fail: { type: "string", default: "0" },
    slow: { type: "string", default: "0" },
    hang: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const port = number("port", 1, 65_535);
const status = number("status", 200, 599);
const failures = number("fail", 0, 1_000_000);
const slowMs = number("slow", 0, 600_000);
let count = 0;

const server = Bun.serve({
  port,
  hostname: "127.0.0.1",
  idleTimeout: 255,
  async fetch(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    count += 1;
    const answer = count <= failures ? 500 : status;
    show(request.headers, body, answer);
    if (values.hang) await new Promise(() => {});
    if (slowMs > 0) await Bun.sleep(slowMs);
    return new Response(null, { status: answer });
  },
});
console.log(`Listening on ${server.url.href}; use it as webhook_url, with any path. Ctrl-C stops.`);

function show(headers: Headers, body: Uint8Array, answer: number): void {
  const event = headers.get("x-svc-event") ?? "(no X-SVC-Event)";
  const delivery = headers.get("x-svc-delivery") ?? "-";
  const attempt = headers.get("x-svc-attempt") ?? "-";
  const does = values.hang ? "no answer" : `answer ${answer}`;
  console.log(`\n#${count} ${event}  delivery ${delivery}  attempt ${attempt}  → ${does}`);
  console.log(`   ${verdict(headers.get("x-svc-signature") ?? "", body)}`);
  console.log(layOut(new TextDecoder().decode(body)));
}

/** The recipe of interface.md 6.1: the HMAC over the bytes as they came, compared in constant time. */
function verdict(signature: string, body: Uint8Array): string {
  if (values.secret === undefined) return `signature ${signature} (give --secret to check it)`;
  const expected = `sha256=${createHmac("sha256", values.secret).update(body).digest("hex")}`;
  const same =
    signature.length === expected.length &&
    timingSafeEqual(Buffer.from(signature), Buffer.from(expected));
  return same ? "signature is valid" : "SIGNATURE IS NOT VALID for this secret";
}

function layOut(body: string): string {
  if (values.plain) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2).replaceAll(/^/gm, "   ");
  } catch {
    return body;
  }
}

function number(name: "port" | "status" | "fail" | "slow", min: number, max: number): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  console.error(`--${name} must be a whole number from ${min} to ${max}.`);
  return process.exit(2);
}
