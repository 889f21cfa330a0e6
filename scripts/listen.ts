// A receiver for development: `bun run listen --port 4000 --secret <secret>` shows every delivery, checks its
// signature, and can simulate failures.
import { parseArgs } from "node:util";

import { isSigned } from "../src/docs/verify/verify.ts";

const HELP = `Receives webhooks on this machine, shows them and checks their signatures.

  --port 4000     where to listen
  --host 127.0.0.1
  --secret TEXT   secret of the subscription; default: WEBHOOK_SECRET. Without a secret, signatures are shown and not checked
  --status 200    status of the response
  --fail N        return 500 for the first N deliveries
  --slow MS       milliseconds to wait before each response
  --hang          never respond
  --plain         show the body as received, without formatting`;

/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

const options = readOptions();
if (options.help) {
  console.log(HELP);
  process.exit(0);
}

const port = number("port", 0, 65_535);
const status = number("status", 200, 599);
const failures = number("fail", 0, 1_000_000);
const slowMs = number("slow", 0, 600_000);
const secret = (options.secret ?? process.env["WEBHOOK_SECRET"]) || undefined;
/** Maps the id of a delivery to the number of its arrivals. Receivers must expect duplicates. */
const seen = new Map<string, number>();
const SEEN_MAX = 10_000;
let count = 0;

const server = listen();
console.log(`Listening on ${server.url.href}; use it as webhook_url, with any path. Ctrl-C stops.`);

function listen() {
  try {
    return Bun.serve({ port, hostname: options.host, idleTimeout: 255, fetch: take });
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return process.exit(1);
  }
}

async function take(request: Request): Promise<Response> {
  // The signature covers the raw bytes. Parsing and serialising the body again would change them.
  const body = new Uint8Array(await request.arrayBuffer());
  count += 1;
  const answer = count <= failures ? 500 : status;
  show(request, body, answer);
  if (options.hang) await new Promise(() => {});
  if (slowMs > 0) await Bun.sleep(slowMs);
  return new Response(null, { status: answer });
}

function show({ method, headers, url }: Request, body: Uint8Array, answer: number): void {
  const event = headers.get("x-svc-event") ?? "(no X-SVC-Event)";
  const delivery = headers.get("x-svc-delivery");
  const attempt = headers.get("x-svc-attempt") ?? "-";
  const does = options.hang ? "no answer" : `answer ${answer}`;
  console.log(
    `\n#${count} ${new Date().toISOString()}  ${method} ${new URL(url).pathname}  → ${does}`,
  );
  console.log(`   ${event}  delivery ${delivery ?? "-"}  attempt ${attempt}`);
  if (delivery !== null) console.log(repeat(delivery));
  for (const name of ["x-svc-signature", "x-svc-signature-previous"]) {
    const signature = headers.get(name);
    if (signature !== null || name === "x-svc-signature")
      console.log(`   ${name}: ${verdict(signature, body)}`);
  }
  console.log(layOut(new TextDecoder().decode(body)));
}

function repeat(delivery: string): string {
  const times = (seen.get(delivery) ?? 0) + 1;
  if (seen.size >= SEEN_MAX) seen.clear();
  seen.set(delivery, times);
  return times === 1
    ? "   new delivery"
    : `   SEEN BEFORE: received ${times} times; a receiver that already handled it returns 200 and does nothing`;
}

function verdict(signature: string | null, body: Uint8Array): string {
  if (signature === null) return "MISSING";
  if (secret === undefined) return `${signature} (add --secret to verify it)`;
  return isSigned(secret, body, signature) ? "valid" : "NOT VALID for this secret";
}

function layOut(body: string): string {
  if (options.plain) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2).replaceAll(/^/gm, "   ");
  } catch {
    return body;
  }
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        port: { type: "string", default: "4000" },
        host: { type: "string", default: "127.0.0.1" },
        secret: { type: "string" },
        status: { type: "string", default: "200" },
        fail: { type: "string", default: "0" },
        slow: { type: "string", default: "0" },
        hang: { type: "boolean", default: false },
        plain: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
    return process.exit(EXIT_USAGE);
  }
}

function number(name: "port" | "status" | "fail" | "slow", min: number, max: number): number {
  const text = options[name];
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  console.error(`--${name} must be a whole number from ${min} to ${max}.`);
  return process.exit(EXIT_USAGE);
}
