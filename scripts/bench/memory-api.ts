// Measures the memory of an API while clients in a closed loop send the largest accepted bodies or read the largest
// pages.
import { ulid } from "ulid";

import { BASE_PATH } from "../../src/http/access.ts";
import { composeBody, digestOf } from "../../src/outbox/payload-format.ts";
import { round } from "./figures.ts";
import { memoryOf } from "./cpu.ts";
import { quantile } from "./figures.ts";
import { asFastAs } from "./offer.ts";
import { type Rig, withRig } from "./rig.ts";
import { addPartners, addProvider, addService, addTenants, EVENTS_PATH } from "./tenants.ts";
import { bytesOf } from "./wire.ts";

const MIB = 2 ** 20;
const LARGEST = MIB - 4_096;
const SAMPLE_MS = 10;
/** Maximum number of characters of a review (src/intake/provider-model.ts). */
const REVIEW_CHARS = 20_000;
/** Maximum number of characters of a text in an action (src/http/body.ts). */
const ACTION_CHARS = 256 * 1_024;

interface ApiCase {
  readonly name: string;
  /** Number of events or actions in a body, or of attempts in a list. */
  readonly events: number;
  readonly letter: string;
  readonly kind: "events" | "actions" | "pages";
}

const CASES: readonly ApiCase[] = [
  { name: "events: 50 texts", events: 50, letter: "x", kind: "events" },
  { name: "events: 17 wide texts", events: 17, letter: "\u754c", kind: "events" },
  { name: "events: 500 texts", events: 500, letter: "x", kind: "events" },
  { name: "events: escapes", events: 9, letter: "\\u754c", kind: "events" },
  { name: "actions: 5 texts", events: 5, letter: "x", kind: "actions" },
  { name: "actions: 100 wide texts", events: 100, letter: "\u754c", kind: "actions" },
  { name: "pages: 100 attempts", events: 100, letter: "x", kind: "pages" },
];

export async function measureApi(tree: string, options: { clients: number; each: number }) {
  const rows = [];
  for (const one of CASES) rows.push(await measure(tree, one, options));
  return rows;
}

async function measure(
  tree: string,
  { name, events, letter, kind }: ApiCase,
  { clients, each }: { clients: number; each: number },
) {
  const env = { RATE_LIMITS: "off", LOG_LEVEL: "error" };
  return withRig({ tree, env }, async (rig) => {
    const api = await rig.start("api");
    const sign = await addProvider(rig);
    const service = await addService(rig);
    const sites = await addPartners(rig.db, clients);
    const at = new Date().toISOString();
    const share = Math.floor((LARGEST / events - 400) / Buffer.byteLength(letter));
    const letters = kind === "events" ? Math.min(share, REVIEW_CHARS) : share;
    const text = letter.repeat(letters);
    const reviews = await rig.db.sql<{ id: number }[]>`
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at)
      select partner_id, account_id, store_id, id, 'x' || n, 5, 'x', now(), now(), now()
        from store_review_sites, generate_series(1, ${each}) n returning id`;
    const list = kind === "pages" ? await addAttempts(rig, events, letter) : new Uint8Array();
    const request = (n: number) => {
      if (kind === "pages") return list;
      if (kind === "actions") {
        const actions = Array.from({ length: events }, (_, i) => ({
          id: `a-${n}-${i}`,
          event: i % 2 === 0 ? "response_submitted" : "response_updated",
          review_id: reviews[n]?.id,
          actor: { type: "system" },
          metadata: { body: "\0" },
          occurred_at: at,
        }));
        const body = filled({ actions }, text);
        const headers = { "Content-Type": "application/json", Authorization: `Bearer ${service}` };
        return bytesOf("POST", `${BASE_PATH}/platform/actions`, { headers, body });
      }
      const all = Array.from({ length: events }, (_, i) => ({
        id: `e-${n}-${i}`,
        type: "review.created",
        occurred_at: at,
        store_review_site_id: sites[n % sites.length]?.siteId,
        review: {
          external_review_id: `r-${n}-${i}`,
          rate: 5,
          reviewer: "Ada",
          reviewer_email: "ada@homeowner.example",
          content: "\0",
          reviewed_at: at,
        },
      }));
      const body = filled({ events: all }, text);
      const headers = { "Content-Type": "application/json", "X-Provider-Signature": sign(body) };
      return bytesOf("POST", EVENTS_PATH, { headers, body });
    };
    const bytes = Array.from({ length: clients * each }, (_, n) => request(n));
    const before = memoryOf(api.pid);
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, memoryOf(api.pid))), SAMPLE_MS);
    const offered = await asFastAs(rig.root, { bytes }, { clients, ms: 60_000 });
    clearInterval(watch);
    const waits = Array.from(
      offered.answeredAt.slice(0, offered.count),
      (t, n) => t - (offered.sentAt[n] ?? t),
    );
    const row = {
      name,
      bodyKib: round((bytes[0]?.length ?? 0) / 1_024),
      requests: offered.count,
      refused: offered.refused,
      idleMib: round(before / MIB),
      mostMib: round(most / MIB),
      p50Ms: round(quantile(waits, 0.5)),
      p99Ms: round(quantile(waits, 0.99)),
      seconds: round((offered.endedAt - offered.startedAt) / 1_000, 1),
    };
    console.log(JSON.stringify(row));
    if (offered.refused > 0) throw new Error(`${name}: ${offered.refused} requests were refused.`);
    return row;
  });
}

/** Replaces each NUL by the text, which must be in its JSON form. */
function filled(body: unknown, text: string): string {
  return JSON.stringify(body).replaceAll("\\u0000", () => text);
}

/**
 * Adds a subscription with attempts that have the longest notes. Returns the request for the list of these attempts.
 */
async function addAttempts(rig: Rig, count: number, letter: string): Promise<Uint8Array> {
  const [{ partnerId, siteId, subscriptionId, token } = none()] = await addTenants(rig, [
    "http://127.0.0.1:9/hook",
  ]);
  const startedAt = new Date();
  for (let n = 0; n < count; n++) {
    const facts = {
      eventId: ulid(),
      event: "note_added",
      partnerId,
      storeId: 1,
      storeReviewSiteId: siteId,
      reviewId: 1,
      axis: null,
      occurredAt: startedAt,
      actorJson: '{"type":"system","id":null,"name":"live"}',
      reviewJson: '{"id":1}',
      siteJson: null,
      metadataJson: JSON.stringify({ body: letter.repeat(ACTION_CHARS) }),
    };
    const [row] = await rig.db.sql<{ id: number }[]>`
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
                                  review, metadata, occurred_at, recorded_at)
      values (${facts.eventId}, ${partnerId}, 1, 1, 1, ${siteId}, ${facts.event}, ${facts.actorJson}::text::json,
              ${facts.reviewJson}::text::json, ${facts.metadataJson}::text::json, ${startedAt}, ${startedAt}) returning id`;
    const body = composeBody({ ...facts, reviewHistoryId: row?.id ?? 0 }, "full", startedAt);
    await rig.db.sql`
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms,
                                     outcome, next_attempt_at, response_truncated, payload_format, host, signature, body_digest)
      values (${ulid()}, ${subscriptionId}, ${n + 1}, ${facts.eventId}, ${facts.event}, 1, 1, ${startedAt}, 1, 'retry', ${startedAt}, false, 1,
              'partner.example', decode(${"5a".repeat(32)}, 'hex'), decode(${digestOf(body)}, 'hex'))`;
  }
  const headers = { Authorization: `Bearer ${token}` };
  return bytesOf("GET", `${BASE_PATH}/partner/webhooks/${subscriptionId}/deliveries?limit=100`, {
    headers,
  });
}

function none(): never {
  throw new Error("There is no tenant.");
}
