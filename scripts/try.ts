// `npx -y bun@1.4.4 scripts/try.ts` follows one review through a running demo, step by step. It logs in, subscribes a
// local receiver, reports a review as a review site would, shows the delivery, verifies its signature, and deletes the
// subscription.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Demo } from "./demo/seed/seed-demo.ts";
import { hmac, signedReview } from "./demo/signed-review.ts";

const START_FIRST = "start the demo first (npx -y bun@1.4.4 scripts/start.ts) and leave it running";
const ARRIVES_WITHIN_MS = 10_000;
/** Here only the creation of a subscription can be answered with this status (contract 6.2). */
const SLOT_TAKEN = 409;

const demo = readDemo();
const arrived = Promise.withResolvers<{ headers: Headers; body: string }>();
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    arrived.resolve({ headers: request.headers, body: await request.text() });
    return new Response(null, { status: 204 });
  },
});
let undo = async () => {};
try {
  await tryOut();
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await undo();
  await receiver.stop(true);
}

async function tryOut(): Promise<void> {
  const { owner, token } = await logIn();
  const subscription = await subscribe(owner.partner_id, token);
  await reportReview(owner.partner_id);
  const late = setTimeout(() => {
    const seconds = ARRIVES_WITHIN_MS / 1_000;
    arrived.reject(new Error(`Nothing arrived within ${seconds} s. Check the dispatcher's log.`));
  }, ARRIVES_WITHIN_MS);
  // A pending timer would keep the process running.
  const { headers, body } = await arrived.promise.finally(() => clearTimeout(late));
  console.log("\n4. The delivery, as your endpoint gets it:\n");
  for (const name of ["X-SVC-Event", "X-SVC-Delivery", "X-SVC-Attempt", "X-SVC-Signature"])
    console.log(`   ${name}: ${headers.get(name)}`);
  console.log(`\n${indent(body)}`);
  const expected = `sha256=${hmac(subscription.secret, body)}`;
  const valid = headers.get("X-SVC-Signature") === expected;
  console.log(
    `\n5. HMAC-SHA256 of the body with the secret: ${valid ? "the signature is valid." : "NOT VALID."}`,
  );
  if (!valid) process.exitCode = 1;
}

async function logIn() {
  const owner = demo.users.find(({ role }) => role === "partner_owner");
  if (owner === undefined) throw new Error("demo.json has no partner owner.");
  const { email, password } = owner;
  const answer = await call("POST", "/login", { body: JSON.stringify({ email, password }) });
  console.log(`1. POST /login as ${email}: 200, a token for one day.`);
  return { owner, token: String(answer["token"]) };
}

async function subscribe(partnerId: number | null, token: string): Promise<{ secret: string }> {
  const authorization = `Bearer ${token}`;
  const wanted = {
    label: "Try it",
    webhook_url: `${receiver.url.href}hook`,
    delivery_kind: "immediate",
  };
  const answer = await call("POST", "/partner/webhooks", {
    authorization,
    body: JSON.stringify(wanted),
  });
  const id = String(answer["id"]);
  undo = async () => {
    await call("DELETE", `/partner/webhooks/${id}`, { authorization });
    console.log("\nThe subscription is deleted again, so you can create your own.");
  };
  console.log(
    `2. POST /partner/webhooks for ${wanted.webhook_url}: 201, subscription ${id} of partner ${partnerId}.`,
  );
  return { secret: String(answer["secret"]) };
}

async function reportReview(partnerId: number | null): Promise<void> {
  const site = demo.store_review_sites.find((one) => one.partner_id === partnerId);
  const provider = demo.providers.find(({ slug }) => slug === site?.provider);
  if (site === undefined || provider === undefined)
    throw new Error("demo.json has no review site of the partner.");
  const { body, signature } = signedReview(site.id, provider.secret);
  const path = `/providers/${provider.slug}/events`;
  const answer = await call("POST", path, { "x-provider-signature": signature, body });
  console.log(`3. POST ${path} with a signed review: 200, ${JSON.stringify(answer)}.`);
}

/** Calls the API; throws with the response for any error. */
async function call(
  method: string,
  path: string,
  given: Record<string, string>,
): Promise<Record<string, unknown>> {
  const { body, ...headers } = given;
  const init = { method, headers: { "content-type": "application/json", ...headers } };
  const request = new Request(demo.base_url + path, body === undefined ? init : { ...init, body });
  const response = await fetch(request).catch((error: unknown) => {
    throw new Error(`No server responds at ${demo.server_root}: ${START_FIRST}.`, { cause: error });
  });
  const text = await response.text();
  if (response.status === SLOT_TAKEN)
    throw new Error(
      `This partner already has an immediate subscription, and can have only one: delete it at ${demo.server_root}/dashboard (Webhooks) and try again.`,
    );
  if (!response.ok)
    throw new Error(`${method} ${path} returned status ${response.status}: ${text}`);
  return text === "" ? {} : JSON.parse(text);
}

function readDemo(): Demo {
  const dataDir = process.env["DATA_DIR"] || join(import.meta.dir, "../.data");
  try {
    return JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8"));
  } catch {
    console.error(`${dataDir} has no demo.json: ${START_FIRST}.`);
    return process.exit(1);
  }
}

function indent(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2).replaceAll(/^/gm, "   ");
}
