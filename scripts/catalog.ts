// `bun run catalog` causes every event of the catalog in a running demo. For each event it prints the API call, the row
// in the history and the delivered body. It exits with 1 if one is missing. It creates a subscription for a partner
// without an immediate subscription, and deletes it at the end.
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { connect } from "../db/client.ts";
import { CATALOG } from "../src/outbox/event.ts";
import { fieldsOf } from "../src/lib/fields.ts";
import type { Demo } from "./demo/seed/seed-demo.ts";
import type { RunState } from "./demo/data-dir.ts";

const ARRIVES_WITHIN_MS = 15_000;
const dataDir = process.env["DATA_DIR"] || join(import.meta.dir, "../.data");
const demo: Demo = JSON.parse(read("demo.json"));

/** Maps each event to the API call that causes it. */
const causes = new Map<string, string>();
/** Maps each event to the delivered body. */
const bodies = new Map<string, string>();
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    bodies.set(request.headers.get("X-SVC-Event") ?? "", await request.text());
    return new Response(null, { status: 204 });
  },
});
let undo = async () => {};
try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await undo();
  await receiver.stop(true);
}

async function run(): Promise<number> {
  const { partnerId, token, subscription } = await subscribe();
  const site = demo.store_review_sites.find((one) => one.partner_id === partnerId);
  const provider = demo.providers.find(({ slug }) => slug === site?.provider);
  const owner = demo.users.find(
    (one) => one.role === "account_owner" && one.account_id === site?.account_id,
  );
  if (site === undefined || provider === undefined || owner === undefined)
    throw new Error("demo.json has no review site of the partner.");
  await reportEverything(site.id, provider, await logIn(owner));
  const test = `/partner/webhooks/${subscription}/test`;
  await cause(["webhook.test"], "POST", test, { token });
  await untilArrived();
  return print(await historyRows());
}

type Provider = Demo["providers"][number];

async function reportEverything(siteId: number, provider: Provider, owner: Signed): Promise<void> {
  const external = randomUUID();
  const report = (events: readonly string[], type: string, fields: Record<string, unknown>) =>
    reportEvent(provider, { type, store_review_site_id: siteId, ...fields }, events);
  const review = {
    external_review_id: external,
    rate: 2,
    reviewer: "Ada",
    reviewer_email: "ada@homeowner.example",
    content: "Late twice, what a shit service.",
    reviewed_at: new Date().toISOString(),
  };
  const posting = { external_review_id: external };
  const received = ["review_received", "profanity_detected"];
  await report(received, "review.created", { review });
  await report(["review_updated"], "review.updated", { review: { ...review, rate: 3 } });
  const path = `/account/reviews/${await newestReview(owner.token)}`;
  const act = (event: string, action: string, body?: object) =>
    cause([event], body ? "POST" : "DELETE", `${path}/${action}`, { token: owner.token, body });
  await act("review_assigned", "assign", { user_id: owner.userId });
  await act("note_added", "notes", { body: "Call her." });
  await act("response_submitted", "response", { body: "Sorry!" });
  await act("response_updated", "response", { body: "We are sorry." });
  await report(["response_post_failed"], "response.failed", { ...posting, error_code: "E-009" });
  const posted = ["response_post_succeeded", "homeowner_notified_of_response"];
  await report(posted, "response.posted", posting);
  await act("response_deleted", "response");
  await act("review_flagged", "flag", { reason: "Not a customer" });
  await act("flag_status_changed", "flag-status", { status: "accepted" });
  for (const [axis, disconnected, reconnected] of [
    ["pull", "review_pull_disconnected", "review_pull_connected"],
    ["post", "response_post_disconnected", "response_post_connected"],
  ] as const) {
    const change = (name: string, connected: boolean) =>
      report([name].filter(Boolean), "connection.changed", {
        axis,
        connected,
        error_code: connected ? null : "E-002",
      });
    // The first call creates a known state, because an earlier run may have left any state.
    await change("", true);
    await change(disconnected, false);
    await change(reconnected, true);
  }
  await report(["review_removed"], "review.removed", { review: posting });
}

interface Signed {
  readonly userId: number;
  readonly token: string;
}

async function logIn({ email, password }: Demo["users"][number]): Promise<Signed> {
  const { token, user } = await call("POST", "/login", { body: { email, password } });
  return { userId: Number(fieldsOf(user)["id"]), token: String(token) };
}

/** Creates a subscription for the first partner that has no immediate subscription. */
async function subscribe() {
  for (const owner of demo.users.filter(({ role }) => role === "partner_owner")) {
    const { token } = await logIn(owner);
    const { data } = await call("GET", "/partner/webhooks", { token });
    const held = data as { delivery_kind: string }[];
    if (held.some((one) => one.delivery_kind === "immediate")) continue;
    const webhook_url = `${receiver.url.href}hook`;
    const body = { label: "Catalog", webhook_url, delivery_kind: "immediate" };
    const made = await call("POST", "/partner/webhooks", { token, body });
    const subscription = String(made["id"]);
    undo = async () => void (await call("DELETE", `/partner/webhooks/${subscription}`, { token }));
    return { partnerId: owner.partner_id, token, subscription };
  }
  throw new Error(
    "Every partner of the demo already has an immediate subscription. Delete one of them first.",
  );
}

async function newestReview(token: string): Promise<number> {
  const { data } = await call("GET", "/account/reviews?limit=1", { token });
  return (data as { id: number }[])[0]?.id ?? 0;
}

async function reportEvent(
  { slug, secret }: Provider,
  event: Record<string, unknown>,
  events: readonly string[],
): Promise<void> {
  const occurred_at = new Date().toISOString();
  const body = JSON.stringify({ events: [{ id: randomUUID(), occurred_at, ...event }] });
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const headers = { "X-Provider-Signature": `sha256=${digest}` };
  const path = `/providers/${slug}/events`;
  for (const one of events) causes.set(one, `POST ${path} ${String(event["type"])}`);
  await call("POST", path, { body, headers });
}

interface Given {
  readonly token?: string;
  readonly body?: object | string | undefined;
  readonly headers?: Record<string, string>;
}

async function cause(
  events: readonly string[],
  method: string,
  path: string,
  given: Given,
): Promise<void> {
  for (const one of events) causes.set(one, `${method} ${path}`);
  await call(method, path, given);
}

/** Calls the API; throws with the response for any error. */
async function call(
  method: string,
  path: string,
  { token, body, headers }: Given,
): Promise<Record<string, unknown>> {
  const response = await fetch(demo.base_url + path, {
    method,
    headers: {
      "Content-Type": "application/json",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

async function untilArrived(): Promise<void> {
  const end = performance.now() + ARRIVES_WITHIN_MS;
  while (bodies.size < CATALOG.length && performance.now() < end) await Bun.sleep(50);
}

/**
 * Reads the history rows of the delivered events from the database, because the API does not show the rows of
 * connections.
 */
async function historyRows(): Promise<Map<string, string>> {
  const url = process.env["DATABASE_URL"] ?? runState().database_url;
  const db = connect(url, { max: 1, name: "reviewrelay-catalog" });
  try {
    const ids = [...bodies.values()].map((body) => String(JSON.parse(body)["event_id"]));
    const rows = await db.sql<{ event: string; row: unknown }[]>`
      select event, to_json(h) as row from review_history h where event_id = any(${ids}::text[])`;
    return new Map(rows.map(({ event, row }) => [event, JSON.stringify(row)]));
  } finally {
    await db.close();
  }
}

function cell(text = "MISSING"): string {
  return text.replaceAll("|", "\\|");
}

function print(history: ReadonlyMap<string, string>): number {
  console.log("| Event | Call | Row of review_history | Delivered body |\n|---|---|---|---|");
  const missing: string[] = [];
  for (const { value } of CATALOG) {
    // A test event is not an action and has no row (contract 6.12).
    const row = value === "webhook.test" ? "none, it is a test" : history.get(value);
    if (row === undefined || !bodies.has(value)) missing.push(value);
    const cells = [causes.get(value), row, bodies.get(value)].map((one) => cell(one));
    console.log(`| ${value} | ${cells.join(" | ")} |`);
  }
  const found = `${CATALOG.length - missing.length} of ${CATALOG.length} events`;
  console.log(
    `\n${found}; ${missing.length === 0 ? "none missing" : `MISSING: ${missing.join(", ")}`}.`,
  );
  return missing.length === 0 ? 0 : 1;
}

function runState(): RunState {
  return JSON.parse(read("run.json"));
}

function read(name: string): string {
  try {
    return readFileSync(join(dataDir, name), "utf8");
  } catch {
    console.error(`${dataDir} has no ${name}. Start the demo first (bun run start).`);
    return process.exit(1);
  }
}
