// All responses, pages and mails about a subscription agree on the length and the age of its queue, on the state of each
// event, on its success rate, and on the times of its incident.
import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import type { Entry } from "../../../dispatcher/actor/event.ts";
import { commitAttempts } from "../../../dispatcher/store/attempt-queries.ts";
import { dispatchBatch } from "../../../dispatcher/store/batch-queries.ts";
import { createStore, type DispatchStore } from "../../../dispatcher/store/store.ts";
import { expireHeldEntries } from "../../../dispatcher/maintenance/removal-queries.ts";
import type { Stats } from "../../../src/dashboard/app/pages/webhooks/data/reads.ts";
import {
  chartSeries,
  outcomeSeries,
  withPresent,
} from "../../../src/dashboard/app/pages/webhooks/stats/stats-series.ts";
import { percent, sentence } from "../../../src/dashboard/app/ui/format.ts";
import { openMail } from "../../../src/outbox/mail.ts";
import { TEST_MARK } from "../../../src/outbox/test-event.ts";
import { countStats } from "../../../src/webhooks/actions/stats.ts";
import { bucketFloor } from "../../../src/webhooks/stats.ts";
import { detectIncidents, setAlerts } from "../../support/alerts.ts";
import { everyPage } from "../../support/api.ts";
import { silentLog } from "../../support/dispatch.ts";
import { removeAll } from "../../support/maintenance.ts";
import {
  attemptRecord,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { disable, HOUR_MS, startWebhooks } from "../../support/webhooks.ts";
import { Prng } from "../../simulation/prng.ts";
import { fixture } from "../../support/fixture.ts";
import { isThorough } from "../../support/thorough.ts";

const world = fixture(startWebhooks);

describe.each(["subscription", "review"] as const)("order by %s", (ordering) => {
  test("all responses agree after each step", async () => {
    world.clock.advance(STEP_MS);
    await signIn();
    const { id } = await world.subscribe({ ordering });
    const { sql } = world.database.db;
    const [row] = await sql<
      { shard: number }[]
    >`select shard from webhook_subscriptions where id = ${id}`;
    const model = new Model({ id, shard: row?.shard ?? 0, ordering });
    // Mails about the subscription of the run before are not of this one.
    model.mailId = (await newestMail(""))?.id ?? "";
    const draw = new Prng(SEED);
    const done: string[] = [];
    try {
      for (let step = 0; step < STEPS; step++) {
        world.clock.advance(STEP_MS);
        const name = draw.pick(WEIGHTED);
        done.push(name);
        await ACTIONS[name]?.(model, draw);
        await checkCounts(model, await checkEvents(model));
        await checkWaiting(model);
        await checkMail(model);
        world.clock.advance(STEP_MS);
        await checkStats(model);
      }
    } catch (error) {
      throw new Error(`After ${done.join(", ")}`, { cause: error });
    }
  });
});

test("all responses agree on how many events wait for a batch, up to 10,000", async () => {
  await signIn();
  const { id } = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
  const { db } = world.database;
  const recordTwo = () => record(db, [reviewAction(tenant), reviewAction(tenant)]);
  await checkBatch(id, 0);
  await recordTwo();
  await checkBatch(id, 2);
  const { body } = await world.ask("GET", `/${id}`);
  const now = new Date(Date.parse(String(body["next_batch_at"])) + 1);
  const batch = { id: ulid(), dispatcherId: "one", hourMs: HOUR_MS, now };
  await dispatchBatch(db, { ...batch, subscriptionId: id });
  await checkBatch(id, 0, { pending: 2 });
  await recordTwo();
  await disable(world, id);
  await checkBatch(id, 2, { held: 2, condition: null });
  await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
  await checkBatch(id, 0);
  const wait = (count: number) => db.sql`
    insert into batch_entries (subscription_id, review_history_id)
    select ${id}, n + (select max(id) from review_history) from generate_series(1, ${count}::int) n
        on conflict do nothing`;
  for (const [count, told = count] of [[9_999], [10_000], [10_001, 10_000]] as const) {
    await wait(count);
    await checkBatch(id, told);
  }
  // A skip deletes the waiting events in chunks, but they no longer count.
  await disable(world, id);
  await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
  await checkBatch(id, 0);
});

/** Checks that the partner and operators see the same number of events that wait for a batch. */
async function checkBatch(id: string, count: number, more: object = {}): Promise<void> {
  const { body: health } = await world.ask("GET", `/${id}/health`);
  expect(health).toMatchObject({ pending: 0, held: 0, ...more, waiting_for_batch: count });
  const { id: partnerId } = world.tenants.partners[0];
  const path = `partners/${partnerId}/webhooks/${id}`;
  expect(await admin(`${path}/health`)).toEqual(health);
  if (count > LISTED) return;
  const list = "messages?state=waiting_for_batch";
  const { body } = await world.ask("GET", `/${id}/${list}`);
  expect(body["data"]).toHaveLength(count);
  expect(await admin(`${path}/${list}`)).toEqual(body);
}

/** A number of events that fits into a page of the list. */
const LISTED = 50;

const SEED = 1;

/** A negative retention time, so that everything is old, even rows that the clock of the test dates into the future. */
const EVERYTHING_DAYS = -60;

let tenant: Tenant;
let store: DispatchStore;

const post = async (model: Model, path: string, body?: unknown) => {
  const answer = await world.ask("POST", `/${model.id}${path}`, { body });
  if (answer.status >= 300) throw new Error(`${path} was answered ${answer.text}`);
  return answer.body;
};

/** Actions that a step may choose from. */
const ACTIONS: Readonly<Record<string, (model: Model, draw: Prng) => Promise<void>>> = {
  async events(model, draw) {
    const reviews = Array.from({ length: draw.int(1, 5) }, () => draw.pick(tenant.reviewIds));
    const actions = reviews.map((reviewId) => reviewAction(tenant, { reviewId }));
    await record(world.database.db, actions, world.clock.now());
    for (const { eventId, reviewId } of actions) model.add(eventId, reviewId);
  },
  async attempts(model, draw) {
    if (!model.isActive) return decide(model, draw);
    for (let i = draw.int(1, 4); i > 0 && model.isActive; i--)
      await commit(model, sendable(model, await load(model), draw), draw);
  },
  async outage(model, draw) {
    if (!model.isActive) return;
    const failing = new Prng(0);
    failing.chance = () => false;
    while (model.isActive) {
      await ACTIONS["events"]?.(model, draw);
      const { entries } = await load(model);
      await commit(model, entries.slice(0, 1), failing, 1);
    }
  },
  async test(model) {
    if (model.isActive) model.add(String((await post(model, "/test"))["event_id"]), null, true);
  },
  async disable(model) {
    if (!model.isActive && model.pending === null) return;
    await post(model, "/disable");
    model.isActive = false;
    model.pending = null;
    for (const one of model.queue.filter(({ isTest }) => isTest)) model.end(one, "skipped");
  },
  async enable(model, draw) {
    if (model.isActive) return;
    const body = {
      held: draw.chance(0.3) ? "skip" : "deliver",
      ...(draw.chance(0.3) && { test: true }),
    };
    const answer = await post(model, "/enable", body);
    model.isActive = !body.test;
    if (model.isActive) model.failed = 0;
    for (const one of model.queue)
      if (body.held === "skip" || one.id === model.pending) model.end(one, "skipped");
    model.pending = body.test ? String(answer["test_event_id"]) : null;
    if (model.pending !== null) model.add(model.pending, null, true);
  },
  async late(model, draw) {
    if (!model.isActive) return;
    const sent = sendable(model, await load(model), draw).filter(({ isTest }) => !isTest);
    await post(model, "/disable");
    await post(model, "/enable", { held: "skip" });
    model.failed = 0;
    for (const one of model.queue) model.end(one, "skipped");
    // These attempts must fail, because the model has already settled their events as skipped.
    const failing = new Prng(0);
    failing.chance = () => false;
    await commit(model, sent, failing);
  },
  async expire(model) {
    if (model.isActive) return;
    await removeAll(expireHeldEntries, world.database.db, EVERYTHING_DAYS);
    if (model.pending !== null) return;
    const { sql } = world.database.db;
    await sql`update outbox_skips set skipped_at = ${world.clock.now()} where subscription_id = ${model.id}`;
    model.expired += model.queue.length;
    for (const one of model.queue) model.end(one, "skipped");
  },
  async redeliver(model, draw) {
    const settled = [...model.events.values()].filter(
      (one) => one.state !== "queued" && !one.isTest,
    );
    if (!model.isActive || settled.length === 0) return;
    const one = draw.pick(settled);
    await post(model, `/deliveries/${one.id}/redeliver`);
    model.again(one);
  },
  async recover(model) {
    if (!model.isActive) return;
    const missed = [...model.events.values()].filter(
      (one) => one.state !== "queued" && !one.isTest && !one.wasDelivered,
    );
    const { queued } = await post(model, "/recover", { since: model.createdAt.toISOString() });
    expect(queued).toBe(missed.length);
    for (const one of missed) model.again(one);
  },
};

/** Each step checks all events so far, so that the time grows with the square. */
const STEPS = isThorough ? 60 : 12;

const STEP_MS = 300_000;

const REVIEWS = 3;

const STATES = ["pending", "waiting", "held", "delivered", "failed", "skipped"] as const;

type State = (typeof STATES)[number];

type Ordering = "subscription" | "review";

beforeAll(async () => {
  const { db } = world.database;
  tenant = { ...(await insertTenant(db, REVIEWS)), partnerId: world.tenants.partners[0].id };
  const config = { batchHourMs: 1_000 };
  await setAlerts({ db, box: world.api.deps.box }, tenant.partnerId);
  store = createStore({ ...world.api.deps, db, clock: world.clock, log: silentLog, config });
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values ('one', now(), now())`;
  await db.sql`
    insert into stats_progress (counted_until) values (date_trunc('hour', now()) - interval '1 hour')`;
});

/** Signs in again, because a test spans hours of fake time and a token lives for a day. */
async function signIn(): Promise<void> {
  const { superAdmin, partners } = world.tenants;
  const owner = await world.api.login(partners[0].owner.email);
  const root = await world.api.login(superAdmin.email);
  Object.assign(world.tokens, { owner, root });
}

/** The expected state of an event. */
interface ExpectedEvent {
  readonly id: string;
  readonly isTest: boolean;
  /** Null for a test event. */
  readonly reviewId: number | null;
  state: "queued" | "delivered" | "failed" | "skipped";
  wasDelivered: boolean;
  /** Time at which the present round was recorded. */
  recordedAt: Date;
}

/** A model of a subscription: its expected queue, settled events and counters. */
class Model {
  isActive = true;
  /** Id of the test that decides whether the subscription is enabled. */
  pending: string | null = null;
  expired = 0;
  delivered = 0;
  /** Permanent failures in a row. */
  failed = 0;
  /** The attempts that were not answered 2xx. */
  readonly failures: { readonly at: Date; readonly isTest: boolean }[] = [];
  attempts = 0;
  /** Id of the last mail that was checked. */
  mailId = "";
  /** The start of the incident, as the API has shown it last. */
  since: string | null = null;
  readonly events = new Map<string, ExpectedEvent>();
  /** Queued events, in the order of their sequence. */
  queue: ExpectedEvent[] = [];
  readonly createdAt = world.clock.now();

  readonly id: string;
  readonly shard: number;
  readonly ordering: Ordering;

  constructor({ id, shard, ordering }: Pick<Model, "id" | "shard" | "ordering">) {
    this.id = id;
    this.shard = shard;
    this.ordering = ordering;
  }

  add(id: string, reviewId: number | null, isTest = false): void {
    const recordedAt = world.clock.now();
    const one: ExpectedEvent = {
      id,
      isTest,
      reviewId,
      state: "queued",
      wasDelivered: false,
      recordedAt,
    };
    this.events.set(id, one);
    this.queue.push(one);
  }

  again(one: ExpectedEvent): void {
    one.state = "queued";
    one.recordedAt = world.clock.now();
    this.queue.push(one);
  }

  end(one: ExpectedEvent, state: Exclude<ExpectedEvent["state"], "queued">): void {
    one.state = state;
    one.wasDelivered ||= state === "delivered";
    this.queue = this.queue.filter((other) => other !== one);
  }
}

async function load({
  id,
  shard,
}: Model): Promise<{ entries: readonly Entry[]; tests: readonly Entry[] }> {
  const request = {
    id,
    shard,
    generation: 1,
    after: 0,
    limit: 64,
    maxBytes: 1e6,
    exceptReviews: [],
  };
  // The clock of PostgreSQL does not follow that of the test, so retries are made due.
  await world.database.db.sql`
    update outbox set due_at = now() - interval '1 second' where subscription_id = ${id} and state = 'waiting' and not is_test`;
  const [one] = await store.load([request]);
  return one?.found ?? { entries: [], tests: [] };
}

/** Chooses entries that may be sent together: a run from the head, or the head of each review, and a test event. */
function sendable(model: Model, found: Awaited<ReturnType<typeof load>>, draw: Prng): Entry[] {
  const { entries, tests } = found;
  const first = (entry: Entry) =>
    entries.find(({ reviewId }) => reviewId === entry.reviewId) === entry;
  const chosen =
    model.ordering === "subscription"
      ? entries.slice(0, draw.int(0, 3))
      : entries.filter((entry) => first(entry) && draw.chance(0.6));
  return [...chosen, ...tests.slice(0, draw.int(0, 1))];
}

/** Copies the columns that the record of an attempt takes from its entry. */
function entryFields(entry: Entry) {
  const { sequence, eventId, event, round, attempt, isLogged } = entry;
  const { payloadMode, batchJobId, recordedAt } = entry;
  return {
    sequence,
    eventId,
    event,
    round,
    attempt,
    isLogged,
    payloadMode,
    batchJobId,
    recordedAt,
  };
}

/** Answers the pending test, which enables the subscription or leaves it disabled. */
async function decide(model: Model, draw: Prng): Promise<void> {
  const found = await load(model);
  expect(found.entries).toEqual([]);
  expect(found.tests.map(({ eventId }) => eventId)).toEqual(model.pending ? [model.pending] : []);
  if (model.pending === null) return;
  await commit(model, found.tests, draw, 1);
  model.isActive = model.events.get(model.pending)?.state === "delivered";
  model.pending = null;
}

/** The columns of the request of a test, which is stored whole. */
const TEST_REQUEST = {
  payloadFormat: null,
  host: null,
  signature: null,
  bodyDigest: null,
  requestHeaders: TEST_MARK,
  requestBody: "{}",
};

async function commit(
  model: Model,
  sent: readonly Entry[],
  draw: Prng,
  attempts = 4,
): Promise<void> {
  const records = [];
  let isBlocked = false;
  for (const entry of sent) {
    if (isBlocked && !entry.isTest) continue;
    const failure = entry.attempt < attempts ? "retry" : "failed";
    const kind = draw.chance(0.6) ? "delivered" : failure;
    isBlocked ||= kind === "retry" && model.ordering === "subscription";
    const decision = kind === "retry" ? ({ kind, delayMs: 60_000 } as const) : ({ kind } as const);
    const startedAt = world.clock.now();
    records.push(
      attemptRecord({
        ...entryFields(entry),
        id: ulid(startedAt.getTime() + ++model.attempts),
        shard: model.shard,
        subscriptionId: model.id,
        startedAt,
        decision,
        ...(entry.isTest && TEST_REQUEST),
        ...(kind === "delivered" ? { statusCode: 200, errorCode: null } : {}),
      }),
    );
    if (kind !== "delivered") model.failures.push({ at: startedAt, isTest: entry.isTest });
    else if (!entry.isTest) model.delivered++;
    const told = model.events.get(entry.eventId);
    if (told?.state !== "queued" || kind === "retry") continue;
    model.end(told, kind);
    if (kind === "delivered") model.failed = 0;
    else if (model.isActive) model.failed += 1;
  }
  if (records.length === 0) return;
  const group = { records, now: world.clock.now(), monotonicMs: 0 };
  const { disabled } = await commitAttempts(world.database.db, "one", group);
  if (disabled.length > 0) model.isActive = false;
}

const WEIGHTED = Object.entries({
  events: 6,
  attempts: 8,
  outage: 1,
  test: 1,
  disable: 2,
  enable: 4,
  late: 1,
  expire: 1,
  redeliver: 2,
  recover: 1,
}).flatMap(([name, weight]) => Array.from({ length: weight }, () => name));

async function shown(model: Model, eventId: string): Promise<State> {
  return String(
    (await world.ask("GET", `/${model.id}/deliveries/${eventId}`)).body["state"],
  ) as State;
}

async function listed(model: Model, state?: State): Promise<Record<string, State>> {
  const query = `limit=7${state === undefined ? "" : `&state=${state}`}`;
  const path = `/partner/webhooks/${model.id}/messages?${query}`;
  const pages = await everyPage<{ event_id: string; state: State }>(
    world.api,
    path,
    world.tokens.owner,
  );
  const rows = pages.flat().map((row) => [row.event_id, row.state]);
  expect(new Set(rows.map(([id]) => id)).size).toBe(rows.length);
  return Object.fromEntries(rows);
}

/** Checks how many events wait behind each one that waits for a retry: those after it in its lane. */
async function checkWaiting(model: Model): Promise<void> {
  const path = `/partner/webhooks/${model.id}/messages?state=waiting`;
  const pages = await everyPage<{ event_id: string; waiting_behind: number | null }>(
    world.api,
    path,
    world.tokens.owner,
  );
  for (const { event_id: id, waiting_behind: behind } of pages.flat()) {
    const place = model.queue.findIndex((one) => one.id === id);
    const one = model.queue[place];
    if (one === undefined || one.isTest) continue;
    const isBehind = (other: ExpectedEvent) =>
      !other.isTest && (model.ordering === "subscription" || other.reviewId === one.reviewId);
    expect(behind).toBe(model.queue.slice(place + 1).filter(isBehind).length);
  }
}

async function checkEvents(model: Model): Promise<Readonly<Record<string, State>>> {
  const states: Record<string, State> = {};
  const queued = model.isActive ? ["pending", "waiting"] : ["held"];
  await Promise.all(
    [...model.events.values()].map(async ({ id, state }) => {
      states[id] = await shown(model, id);
      expect(state === "queued" ? queued : [state]).toContain(states[id]);
    }),
  );
  expect(await listed(model)).toEqual(states);
  await Promise.all(
    STATES.map(async (state) => {
      const expected = Object.entries(states).filter(([, one]) => one === state);
      expect(await listed(model, state)).toEqual(Object.fromEntries(expected));
    }),
  );
  return states;
}

async function admin(path: string): Promise<Record<string, unknown>> {
  const { status, body, text } = await world.api.call("GET", `/admin/${path}`, {
    token: world.tokens.root,
  });
  if (status !== 200) throw new Error(text);
  return body;
}

async function checkCounts(model: Model, states: Readonly<Record<string, State>>): Promise<void> {
  const { length: count } = model.queue;
  const [first] = model.queue;
  const oldest = first?.recordedAt.toISOString().replace("Z", "+00:00") ?? null;
  const ageS =
    first && Math.floor((world.clock.now().getTime() - first.recordedAt.getTime()) / 1000);

  const { body: health } = await world.ask("GET", `/${model.id}/health`);
  expect(health["condition"] === null).toBe(!model.isActive);
  expect(health).toMatchObject({
    pending: model.isActive ? count : 0,
    held: model.isActive ? 0 : count,
    oldest_pending_age_s: ageS ?? null,
    expired_24h: model.expired,
    waiting_for_batch: 0,
  });
  const own = {
    subscription_id: model.id,
    queued: count,
    oldest_recorded_at: oldest,
    is_active: model.isActive,
  };
  expect((await admin("backlogs"))["data"]).toMatchObject(count === 0 ? [] : [own]);

  const isSendable = model.isActive && first !== undefined && states[first.id] === "pending";
  const state = await admin("dispatcher");
  expect(state["lag"]).toMatchObject({
    entries: count,
    subscriptions: count > 0 ? 1 : 0,
    oldest_recorded_at: isSendable ? oldest : null,
  });
  const waiting = model.queue.filter(({ id, isTest }) => states[id] === "waiting" && !isTest);
  const blocked = state["blocked_heads"] as { event_id: string }[];
  expect(blocked.map((one) => one.event_id)).toEqual(waiting.map(({ id }) => id));
  if (health["blocked_by"] !== null && model.isActive)
    expect(waiting).toContainEqual(expect.objectContaining({ id: health["blocked_by"] }));

  const entries = (await load(model)).entries.map(({ eventId }) => eventId);
  const queue = model.isActive ? model.queue.filter(({ isTest }) => !isTest) : [];
  // Of a review that waited, a load by review has only the first entry.
  const isBehind = ({ reviewId }: ExpectedEvent, place: number) =>
    queue.slice(0, place).some((one) => one.reviewId === reviewId && states[one.id] === "waiting");
  const isByReview = model.ordering === "review";
  const expected = queue.filter((one, place) => !isByReview || !isBehind(one, place));
  const inOrder = (ids: string[]) => (isByReview ? ids.toSorted() : ids);
  expect(inOrder(entries)).toEqual(inOrder(expected.slice(0, 64).map(({ id }) => id)));
}

/** Counts stats, and checks the backlog of the last bucket as the charts show it. */
async function checkStats(model: Model): Promise<void> {
  const { db } = world.database;
  const { until } = await countStats({ ...world.api.deps, db }, world.clock.now());
  if (until === undefined) throw new Error("Nothing was counted.");
  const since = new Date(until.getTime() - STEP_MS);
  const query = new URLSearchParams({
    since: since.toISOString(),
    until: until.toISOString(),
    step: "300",
  });
  const { body } = await world.ask("GET", `/${model.id}/stats?${query.toString()}`);
  const points = body["points"] ?? body["data"];
  expect(points).toMatchObject([{ backlog: model.queue.length }]);
  await checkChart(model);
}

/** Checks that the numbers which the pages compute for their chart are those of health and of the incident. */
async function checkChart(model: Model): Promise<void> {
  const [stats, health, incident, subscription] = await Promise.all(
    ["/stats", "/health", "/incident", ""].map((path) => world.ask("GET", `/${model.id}${path}`)),
  );
  const { pending, held, condition, success_rate_24h: rate } = health?.body ?? {};
  const present = withPresent(
    stats?.body as unknown as Stats,
    Number(pending) + Number(held),
    world.clock.now().getTime(),
  );
  const [failed, delivered] = outcomeSeries(present).map(({ summary }) => summary);
  const failures = model.failures.filter(({ isTest }) => !isTest);
  const total = model.delivered + failures.length;
  expect(rate).toBe(total === 0 ? null : model.delivered / total);
  expect(subscription?.body["consecutive_failure_count"]).toBe(model.failed);
  expect([delivered, failed]).toEqual([String(model.delivered), String(failures.length)]);
  expect(chartSeries(present).queue[0]?.summary).toBe(`${model.queue.length} now`);
  const { since, causes } = incident?.body ?? {};
  const began = typeof since === "string" ? Date.parse(since) : undefined;
  const hour = bucketFloor(new Date(world.clock.now().getTime() - 3_600_000)).getTime();
  const isOfHour = (condition === "healthy" || condition === "degraded") && (began ?? hour) >= hour;
  const from = isOfHour ? hour : (began ?? Number.POSITIVE_INFINITY);
  const counted = (isOfHour ? failures : model.failures).filter(({ at }) => at.getTime() >= from);
  const attempts = (causes as { attempts: number }[]).map((one) => one.attempts);
  expect(attempts.reduce((sum, one) => sum + one, 0)).toBe(counted.length);
}

interface ListedAttempt {
  readonly event: string;
  readonly event_id: string;
  readonly started_at: string;
  readonly outcome: string;
}

/** Reads the newest mail about alerts after the one with the given id. */
async function newestMail(after: string) {
  const [mail] = await world.database.db.sql<{ id: string; sealed: string }[]>`
    select id, sealed_message as sealed from mails
     where kind = 'webhook_alert' and id > ${after} order by id desc limit 1`;
  return mail;
}

/** Raises the alerts that are due, and checks that the mail about them says what the API says at this moment. */
async function checkMail(model: Model): Promise<void> {
  const { db } = world.database;
  const { box } = world.api.deps;
  await detectIncidents({ db, box, clock: world.clock }, true);
  const read = async (path: string) => (await world.ask("GET", `/${model.id}${path}`)).body;
  const incident = await read("/incident");
  const told = typeof incident["since"] === "string" ? incident["since"] : null;
  const mail = await newestMail(model.mailId);
  if (mail !== undefined) {
    model.mailId = mail.id;
    const { subject, text } = openMail(box, mail.id, mail.sealed);
    const isOver = subject.endsWith("has recovered");
    const { incidents } = await read("/incidents");
    const [past] = incidents as { began_at: string; ended_at: string }[];
    if (isOver) expect(past?.began_at).toBe(model.since ?? undefined);
    const { Endpoint: _, "Earlier alerts": __, ...facts } = factsOf(text);
    expect(facts).toEqual({
      ...(!isOver && { Condition: conditionInWords(await read("/health")) }),
      ...(model.queue.length > 0 && {
        [model.isActive ? "Queued events" : "Held events"]: String(model.queue.length),
      }),
      ...(!isOver && nextAttemptInWords(await read("/health"), await admin("dispatcher"))),
      ...(isOver
        ? { Began: inUtc(past?.began_at), Recovered: inUtc(past?.ended_at) }
        : told !== null && { "Failing since": inUtc(told) }),
      ...(await failuresInWords(model, isOver ? past?.began_at : told)),
      ...oldestInWords(isOver ? undefined : model.queue.find(({ isTest }) => !isTest)),
    });
  }
  model.since = told;
}

/** Reads the facts of a mail's text by their names. */
function factsOf(text: string): Record<string, string> {
  const lines = text.matchAll(/^ {4}([^:]+): (.+)$/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
}

const inUtc = (at: string | null | undefined) => `${at?.slice(0, 19).replace("T", " ")} UTC`;

/** Returns the condition and the rate in the words of the pages. */
function conditionInWords(health: Record<string, unknown>): string {
  const { condition, success_rate_1h: rate, blocked_attempts: blocked } = health;
  if (typeof condition !== "string") return "Disabled";
  const words = sentence(condition === "healthy" && blocked !== 0 ? "retrying" : condition);
  return typeof rate === "number"
    ? `${words}, with a success rate of ${percent(rate)} in the last hour`
    : words;
}

/** Returns the first and the last failed attempt of an incident in the words of a mail, from the lists of the API. */
async function failuresInWords(model: Model, since: string | null | undefined) {
  const path = `/partner/webhooks/${model.id}/deliveries?limit=100`;
  const pages = await everyPage<ListedAttempt>(world.api, path, world.tokens.owner);
  const failed = pages
    .flat()
    .filter((one) => one.outcome !== "delivered" && one.started_at >= String(since));
  const { body: health } = await world.ask("GET", `/${model.id}/health`);
  const lost = health["first_failure"] as { event_id: string } | null;
  const time = (one: ListedAttempt) => `${inUtc(one.started_at)}, HTTP 500`;
  const answer = (one: ListedAttempt) => `${time(one)}, ${one.event} ${one.event_id}`;
  const first = failed.find((one) => one.event_id === lost?.event_id) ?? failed.at(-1);
  const [last] = failed;
  if (first === undefined || last === undefined) return {};
  return {
    [lost === null ? "First failure" : "First event that failed for good"]:
      // The mail names each event once.
      first.event_id === last.event_id ? time(first) : answer(first),
    "Last failure": answer(last),
  };
}

/** Returns the next attempt of the event that waits for a retry in the words of a mail. */
function nextAttemptInWords(
  { blocked_by: id }: Record<string, unknown>,
  { blocked_heads: heads }: Record<string, unknown>,
) {
  const all = heads as { event_id: string; attempt: number; due_at: string }[];
  const head = all.find((one) => one.event_id === id);
  return head && { "Next attempt": `${inUtc(head.due_at)}, attempt ${head.attempt} of 4` };
}

const oldestInWords = (oldest: ExpectedEvent | undefined) =>
  oldest === undefined ? {} : { "Oldest event": inUtc(oldest.recordedAt.toISOString()) };
