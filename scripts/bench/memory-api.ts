// The memory of an API while clients send the largest bodies that it accepts, as fast as they are answered.
import { BASE_PATH } from "../../src/http/access.ts";
import { round } from "./figures.ts";
import { memoryOf } from "./cpu.ts";
import { quantile } from "./figures.ts";
import { asFastAs } from "./offer.ts";
import { withRig } from "./rig.ts";
import { addPartners, addProvider, addService, EVENTS_PATH } from "./tenants.ts";
import { bytesOf } from "./wire.ts";

const MIB = 2 ** 20;
const LARGEST = MIB - 4_096;
const SAMPLE_MS = 10;
/** The most characters of a review (src/providers/model.ts). */
const REVIEW_CHARS = 20_000;

interface ApiCase {
  readonly name: string;
  /** The number of events or actions in a body. */
  readonly events: number;
  readonly letter: string;
  readonly kind: "events" | "actions";
}

const CASES: readonly ApiCase[] = [
  { name: "events: 50 texts", events: 50, letter: "x", kind: "events" },
  { name: "events: 17 wide texts", events: 17, letter: "\u754c", kind: "events" },
  { name: "events: 500 texts", events: 500, letter: "x", kind: "events" },
  { name: "events: escapes", events: 9, letter: "\\u754c", kind: "events" },
  { name: "actions: 5 texts", events: 5, letter: "x", kind: "actions" },
  { name: "actions: 100 wide texts", events: 100, letter: "\u754c", kind: "actions" },
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
    const request = (n: number) => {
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
    if (offered.refused > 0) throw new Error(`${name}: ${offered.refused} requests were refused.`);
    const waits = Array.from(
      offered.answeredAt.slice(0, offered.count),
      (t, n) => t - (offered.sentAt[n] ?? t),
    );
    const row = {
      name,
      bodyKib: round((bytes[0]?.length ?? 0) / 1_024),
      requests: offered.count,
      idleMib: round(before / MIB),
      mostMib: round(most / MIB),
      p50Ms: round(quantile(waits, 0.5)),
      p99Ms: round(quantile(waits, 0.99)),
      seconds: round((offered.endedAt - offered.startedAt) / 1_000, 1),
    };
    console.log(JSON.stringify(row));
    return row;
  });
}

/** Puts a text as it is written in JSON in place of each NUL. */
function filled(body: unknown, text: string): string {
  return JSON.stringify(body).replaceAll("\\u0000", () => text);
}
