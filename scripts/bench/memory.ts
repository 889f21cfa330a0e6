// `bun run bench memory` measures the memory of a process at its limits. Use --tree PATH to compare checkouts.
//   dispatcher (the default): slow receivers keep large events waiting, while others take events; --subscriptions N
//   --events N --letters N --letter C: one case of large events; --answer MS (14000): the response time of their
//   receivers; --ordering review
//   api: --clients N (64) in a closed loop send --each N (6) of the largest accepted bodies, or read the largest pages
import { ulid } from "ulid";

import { BASE_PATH } from "../../src/http/access.ts";
import { composeBody, digestOf } from "../../src/outbox/payload-format.ts";
import { bytesOf, latencies, sendAccepted, waitsOf } from "./load.ts";
import { memoryOf, readArguments, type Rig, round, until, withRig, writeResult } from "./rig.ts";
import { type Arrival, hostsOf, startSink } from "./sink.ts";
import {
  addPartners,
  addPlace,
  addProvider,
  addReviews,
  addService,
  EVENTS_PATH,
  insertBacklog,
  insertUsers,
  login,
  openSchedule,
  orderByReview,
  type Partner,
  subscribe,
} from "./tenants.ts";

const MIB = 2 ** 20;
const SAMPLE_MS = 10;

const options = readArguments(
  {
    subscriptions: 0,
    events: 64,
    letters: 20_000,
    letter: "x",
    ordering: "subscription",
    answer: 14_000,
    clients: 64,
    each: 6,
  },
  ["dispatcher", "api"],
);
const { tree } = options;

interface LargeEvents {
  readonly subscriptions: number;
  readonly events: number;
  readonly letters: number;
  readonly letter: string;
}

const LARGE_EVENTS: readonly LargeEvents[] =
  options.subscriptions > 0
    ? [options]
    : [
        { subscriptions: 500, events: 70, letters: 20_000, letter: "x" },
        { subscriptions: 500, events: 4, letters: 256 * 1_024, letter: "x" },
      ];

interface LargeBodies {
  readonly name: string;
  /** Number of events or actions in a body, or of attempts in a list. */
  readonly events: number;
  readonly letter: string;
  readonly kind: "events" | "actions" | "pages";
}

const LARGE_BODIES: readonly LargeBodies[] = [
  { name: "events: 50 texts", events: 50, letter: "x", kind: "events" },
  { name: "events: 17 wide texts", events: 17, letter: "\u754c", kind: "events" },
  { name: "events: 500 texts", events: 500, letter: "x", kind: "events" },
  { name: "events: escapes", events: 9, letter: "\\u754c", kind: "events" },
  { name: "actions: 5 texts", events: 5, letter: "x", kind: "actions" },
  { name: "actions: 100 wide texts", events: 100, letter: "\u754c", kind: "actions" },
  { name: "pages: 100 attempts", events: 100, letter: "x", kind: "pages" },
];

/** Samples the memory of a process until `stop`, which returns the first and the largest value in MiB. */
function watchMemory(pid: number | undefined) {
  const before = memoryOf(pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, memoryOf(pid))), SAMPLE_MS);
  return {
    stop() {
      clearInterval(watch);
      return { idleMib: round(before / MIB), mostMib: round(most / MIB) };
    },
  };
}

const HEALTHY = 100;
const HEALTHY_EVENTS = 300;
/** Duration of the measurement in ms; it is longer than one response of the receivers. */
const WATCHED_MS = 26_000;
const BEGIN_MS = 3_000;

function measureDispatcher({ subscriptions, events, letters, letter }: LargeEvents) {
  return withRig({ tree, env: { LOG_LEVEL: "warn" } }, async (rig) => {
    const { db } = rig;
    const sink = await startSink();
    rig.atEnd(sink.stop);
    const schedule = await openSchedule(rig);
    const place = await addPlace(rig);
    const urls = hostsOf(sink.port, HEALTHY + subscriptions);
    const all = await subscribe(rig, urls);
    const [healthy, slow] = [all.slice(0, HEALTHY), all.slice(HEALTHY)];
    if (options.ordering === "review") await orderByReview(db, slow);
    const [well, hang] = [urls.slice(0, HEALTHY), urls.slice(HEALTHY)].map((some) =>
      some.map((url) => new URL(url).hostname),
    );
    const order = new Order(new Set(well));
    await sink.reset({ hang: hang ?? [], hangMs: options.answer });
    const dispatcher = await rig.start("dispatcher");
    /** Delivers events to the healthy receivers. Returns the deliveries per second. */
    const drain = async (what: string) => {
      await insertBacklog(db, place, healthy, { each: HEALTHY_EVENTS });
      const goal = order.healthy + HEALTHY * HEALTHY_EVENTS;
      const startedAt = performance.now();
      await schedule.wake(healthy);
      const isDone = async () => order.take(await sink.takeArrivals()) >= goal;
      await until(what, isDone, 20);
      return (HEALTHY * HEALTHY_EVENTS * 1_000) / (performance.now() - startedAt);
    };
    await drain("warm");
    await drain("warm");
    const alone = await drain("alone");
    await insertBacklog(db, place, slow, { each: events, padding: letter.repeat(letters) });
    const watch = watchMemory(dispatcher.pid);
    const startedAt = performance.now();
    await schedule.wake(slow);
    await Bun.sleep(BEGIN_MS);
    const beside = await drain("beside");
    const trace: number[] = [];
    while (performance.now() - startedAt < WATCHED_MS) {
      trace.push(Math.round(memoryOf(dispatcher.pid) / MIB));
      await Bun.sleep(1_000);
    }
    order.take(await sink.takeArrivals());
    const row = {
      subscriptions,
      events,
      letters,
      letter,
      ...watch.stop(),
      slowPosts: order.slow,
      disorder: order.wrong,
      alonePerSecond: round(alone),
      besidePerSecond: round(beside),
      ratio: round(beside / alone, 2),
      trace: trace.join(" "),
    };
    console.log(JSON.stringify(row));
    return row;
  });
}

/** Counts arrivals, and those that came after a later event of the same host. */
class Order {
  healthy = 0;
  slow = 0;
  wrong = 0;
  readonly #well: ReadonlySet<string>;
  readonly #last = new Map<string, string>();

  constructor(well: ReadonlySet<string>) {
    this.#well = well;
  }

  /** Returns the number of arrivals at healthy hosts. */
  take(arrivals: readonly Arrival[]): number {
    for (const [id, , host] of arrivals) {
      if (id < (this.#last.get(host) ?? "")) this.wrong += 1;
      this.#last.set(host, id);
      if (this.#well.has(host)) this.healthy += 1;
      else this.slow += 1;
    }
    return this.healthy;
  }
}

const LARGEST = MIB - 4_096;
/** Maximum number of characters of a review (src/intake/provider-model.ts). */
const REVIEW_CHARS = 20_000;
/** Maximum number of characters of a text in an action (src/http/body.ts). */
const ACTION_CHARS = 256 * 1_024;

function measureApi(one: LargeBodies) {
  const { clients } = options;
  return withRig({ tree, env: { RATE_LIMITS: "off", LOG_LEVEL: "error" } }, async (rig) => {
    const api = await rig.start("api");
    const request = await REQUESTS[one.kind](rig, one);
    const bytes = Array.from({ length: clients * options.each }, (_, n) => request(n));
    const watch = watchMemory(api.pid);
    const offered = await sendAccepted(rig.root, { bytes }, { clients, ms: 60_000 });
    const { p50Ms, p99Ms } = latencies(waitsOf(offered));
    const row = {
      name: one.name,
      bodyKib: round((bytes[0]?.length ?? 0) / 1_024),
      requests: offered.count,
      refused: offered.refused,
      ...watch.stop(),
      p50Ms,
      p99Ms,
      seconds: round((offered.endedAt - offered.startedAt) / 1_000, 1),
    };
    console.log(JSON.stringify(row));
    return row;
  });
}

const REQUESTS = { events: eventRequests, actions: actionRequests, pages: pageRequests };

/** Repeats the letter, so that `events` texts fill a body. */
function textOf({ events, letter }: LargeBodies, most = Number.POSITIVE_INFINITY): string {
  const share = Math.floor((LARGEST / events - 400) / Buffer.byteLength(letter));
  return letter.repeat(Math.min(share, most));
}

/** Replaces each NUL by the text, which must be in its JSON form. */
function filled(body: unknown, text: string): string {
  return JSON.stringify(body).replaceAll("\\u0000", () => text);
}

async function eventRequests(rig: Rig, one: LargeBodies) {
  const sign = await addProvider(rig);
  const sites = await addPartners(rig.db, options.clients);
  const text = textOf(one, REVIEW_CHARS);
  const at = new Date().toISOString();
  return (n: number) => {
    const events = Array.from({ length: one.events }, (_, i) => ({
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
    const body = filled({ events }, text);
    return bytesOf("POST", EVENTS_PATH, { headers: { "X-Provider-Signature": sign(body) }, body });
  };
}

async function actionRequests(rig: Rig, one: LargeBodies) {
  const service = await addService(rig);
  await addProvider(rig);
  const names = Array.from({ length: options.each }, (_, n) => `x${n}`);
  const reviews = await addReviews(rig.db, await addPartners(rig.db, options.clients), names);
  const headers = { Authorization: `Bearer ${service}` };
  const text = textOf(one);
  const at = new Date().toISOString();
  return (n: number) => {
    const actions = Array.from({ length: one.events }, (_, i) => ({
      id: `a-${n}-${i}`,
      event: i % 2 === 0 ? "response_submitted" : "response_updated",
      review_id: reviews[n],
      actor: { type: "system" },
      metadata: { body: "\0" },
      occurred_at: at,
    }));
    const body = filled({ actions }, text);
    return bytesOf("POST", `${BASE_PATH}/platform/actions`, { headers, body });
  };
}

/** Adds a subscription with attempts that have the longest notes, and reads the list of these attempts. */
async function pageRequests(rig: Rig, one: LargeBodies) {
  await addProvider(rig);
  const partners = await addPartners(rig.db, 1);
  const [subscription] = await subscribe(rig, ["http://127.0.0.1:9/hook"], partners);
  const [partner] = partners;
  if (subscription === undefined || partner === undefined) throw new Error("No partner was added.");
  const { subscriptionId } = subscription;
  for (let n = 1; n <= one.events; n++)
    await addAttempt(rig, { ...partner, subscriptionId, n, note: one.letter.repeat(ACTION_CHARS) });
  const [email = ""] = await insertUsers(rig.db, [partner.partnerId]);
  const headers = { Authorization: `Bearer ${await login(rig.root, email)}` };
  const path = `${BASE_PATH}/partner/webhooks/${subscriptionId}/deliveries?limit=100`;
  const bytes = bytesOf("GET", path, { headers });
  return () => bytes;
}

interface Noted extends Partner {
  readonly subscriptionId: string;
  readonly n: number;
  readonly note: string;
}

async function addAttempt(
  { db }: Rig,
  { partnerId, siteId, subscriptionId, n, note }: Noted,
): Promise<void> {
  const startedAt = new Date();
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
    metadataJson: JSON.stringify({ body: note }),
  };
  const [row] = await db.sql<{ id: number }[]>`
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
                                review, metadata, occurred_at, recorded_at)
    values (${facts.eventId}, ${partnerId}, 1, 1, 1, ${siteId}, ${facts.event}, ${facts.actorJson}::text::json,
            ${facts.reviewJson}::text::json, ${facts.metadataJson}::text::json, ${startedAt}, ${startedAt}) returning id`;
  const body = composeBody({ ...facts, reviewHistoryId: row?.id ?? 0 }, "full", startedAt);
  await db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms,
                                   outcome, next_attempt_at, response_truncated, payload_format, host, signature, body_digest)
    values (${ulid()}, ${subscriptionId}, ${n}, ${facts.eventId}, ${facts.event}, 1, 1, ${startedAt}, 1, 'retry', ${startedAt},
            false, 1, 'partner.example', decode(${"5a".repeat(32)}, 'hex'), decode(${digestOf(body)}, 'hex'))`;
}

const rows: object[] = [];
const isApi = options.measurements.includes("api");
if (isApi) for (const one of LARGE_BODIES) rows.push(await measureApi(one));
else for (const one of LARGE_EVENTS) rows.push(await measureDispatcher(one));
writeResult(isApi ? "memory-api" : "memory", rows);
