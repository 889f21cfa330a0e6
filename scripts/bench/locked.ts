// `bun run bench locked [--seconds 60]` measures the effect of a locked row. The sequence of one of 20 partners stays
// locked under load; sign-in, readiness and the other partners are measured before and meanwhile. It fails if a
// rejected event is recorded or an accepted one is missing.
import { createHmac } from "node:crypto";
import { parseArgs } from "node:util";

import { newSecret } from "../../src/lib/secrets.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { insertPlan, insertReviewSite } from "../demo/seed/rows.ts";
import { BENCH_PASSWORD, startAuthRig } from "./auth-rig.ts";
import { quantile } from "./figures.ts";
import { subscribe, writeResult } from "./rig.ts";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "60" } } });
const SECONDS = Number(values.seconds);
const PARTNERS = 20;
const PROVIDER = "bench";
/** The pause between two requests of one sender, so that the machine is not saturated. */
const PAUSE_MS = { locked: 100, others: 20, login: 200, ready: 200 };
const SENDERS = { locked: 16, others: 4, login: 1, ready: 1 };
type Kind = keyof typeof SENDERS;
const KINDS: readonly Kind[] = ["locked", "others", "login", "ready"];

const rig = await startAuthRig(1);
const secret = newSecret();
const accepted: string[] = [];
const refused: string[] = [];
let serial = 0;
try {
  const [lockedSite = 0, ...sites] = await addSites();
  await measure(lockedSite, sites, 5);
  const before = await measure(lockedSite, sites, SECONDS);
  const locked = await rig.db.transaction(async (tx) => {
    await tx.sql`
      select from outbox_sequences q
        join webhook_subscriptions s on s.id = q.subscription_id
        join store_review_sites l on l.partner_id = s.partner_id
       where l.id = ${lockedSite} for update of q`;
    return measure(lockedSite, sites, SECONDS);
  });
  report(before, locked);
  const rows = await rig.db.sql<{ id: string }[]>`
    select review->>'external_review_id' as id from review_history`;
  const recorded = new Set(rows.map(({ id }) => id));
  const lost = accepted.filter((id) => !recorded.has(id)).length;
  const kept = refused.filter((id) => recorded.has(id)).length;
  console.log(
    `\n${accepted.length} accepted, ${lost} lost; ${refused.length} refused, ${kept} kept.`,
  );
  console.log(writeResult("locked", { seconds: SECONDS, before, locked, lost, kept }));
} finally {
  await rig.stop();
}

async function addSites(): Promise<number[]> {
  const { db, config } = rig;
  const box = createSecretBox({ current: config.masterKey });
  const reviewSiteId = await insertReviewSite(db, box, { slug: PROVIDER, name: "Bench", secret });
  const planId = await insertPlan(db, { name: "Bench", features: [] });
  const urls = Array.from({ length: PARTNERS }, () => "http://127.0.0.1:3999/");
  const made = await subscribe(db, config.masterKey, urls);
  const rows = await db.sql<{ id: number }[]>`
    with accounts as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
      select 'account', 'Bench', p, ${planId}, '#000000', now()
        from unnest(${made.map(({ partnerId }) => partnerId)}::int[]) p returning id, partner_id
    ), places as (
      insert into stores (account_id, partner_id, name) select id, partner_id, 'Bench' from accounts returning *
    )
    insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
    select id, ${reviewSiteId}, account_id, partner_id, true, true from places returning id`;
  return rows.map(({ id }) => id);
}

interface Measured {
  /** Status → count. */
  readonly statuses: Record<string, number>;
  readonly latenciesMs: number[];
}

function none(): Measured {
  return { statuses: {}, latenciesMs: [] };
}

async function measure(
  lockedSite: number,
  sites: readonly number[],
  seconds: number,
): Promise<Record<Kind, Measured>> {
  const endMs = performance.now() + seconds * 1_000;
  const measured = { locked: none(), others: none(), login: none(), ready: none() };
  const calls: Record<Kind, () => Promise<number>> = {
    locked: () => send(lockedSite),
    others: () => send(sites[serial % sites.length] ?? 0),
    login: () => post("/api/v1/login", { email: rig.emails[0], password: BENCH_PASSWORD }),
    ready: () => statusOf(fetch(`${rig.apiRoot}/readyz`, { signal: patience() })),
  };
  const sender = async (kind: Kind) => {
    const { statuses, latenciesMs } = measured[kind];
    while (performance.now() < endMs) {
      const begunMs = performance.now();
      const status = await calls[kind]();
      latenciesMs.push(performance.now() - begunMs);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await Bun.sleep(PAUSE_MS[kind]);
    }
  };
  await Promise.all(
    KINDS.flatMap((kind) => Array.from({ length: SENDERS[kind] }, () => sender(kind))),
  );
  return measured;
}

async function send(site: number): Promise<number> {
  const id = `r-${++serial}`;
  const at = new Date().toISOString();
  const review = {
    external_review_id: id,
    rate: 4,
    reviewer: "Ada",
    content: "Fine.",
    reviewed_at: at,
  };
  const event = { id, type: "review.created", occurred_at: at, store_review_site_id: site, review };
  const status = await post(`/api/v1/providers/${PROVIDER}/events`, { events: [event] });
  (status === 200 ? accepted : refused).push(id);
  return status;
}

async function post(path: string, value: unknown): Promise<number> {
  const body = JSON.stringify(value);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = {
    "Content-Type": "application/json",
    "X-Provider-Signature": `sha256=${signature}`,
  };
  return statusOf(fetch(rig.apiRoot + path, { method: "POST", headers, body, signal: patience() }));
}

/** A request without an answer within this time counts with status 0. */
function patience(): AbortSignal {
  return AbortSignal.timeout(10_000);
}

async function statusOf(answer: Promise<Response>): Promise<number> {
  try {
    const response = await answer;
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

function report(before: Record<Kind, Measured>, locked: Record<Kind, Measured>): void {
  console.log(`| ${SECONDS} s each | before: p50, p99 | answers | locked: p50, p99 | answers |`);
  console.log("|---|---|---|---|---|");
  const figures = ({ latenciesMs, statuses }: Measured) =>
    `${quantile(latenciesMs, 0.5)}, ${quantile(latenciesMs, 0.99)} ms | ${JSON.stringify(statuses)}`;
  for (const kind of KINDS)
    console.log(`| ${kind} | ${figures(before[kind])} | ${figures(locked[kind])} |`);
}
