import { describe, expect, test } from "bun:test";

import { encodeTime, ulid } from "ulid";

import { countStats } from "../../../src/webhooks/actions/stats.ts";
import { bucketFloor } from "../../../src/webhooks/stats.ts";
import { addAttempt } from "../../support/attempts.ts";
import { makeWait, passQueue } from "../../support/outbox.ts";
import { disable, settle, startWebhooks } from "../../support/webhooks.ts";
import { allChunks } from "../../support/maintenance.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(() =>
  startWebhooks({ config: { retentionDays: 2, accessTokenTtlS: 30 * 86_400 } }),
);

describe("the health", () => {
  test("of a new subscription is empty", async () => {
    const { id } = await world.subscribe();
    expect(await health(id)).toEqual({
      condition: "healthy",
      pending: 0,
      held: 0,
      waiting_for_batch: 0,
      oldest_pending_age_s: null,
      blocked_by: null,
      blocked_since: null,
      blocked_attempts: 0,
      last_success_at: null,
      success_rate_1h: null,
      success_rate_24h: null,
      latency_ms_24h: { p50: null, p95: null, p99: null },
      expired_24h: 0,
      quarantined: [],
      outage_since: null,
      first_failure: null,
    });
  });

  test("shows the length and age of the queue, and that it is held when disabled", async () => {
    const { id } = await world.subscribe();
    await world.emit(2);
    world.clock.advance(90_500);
    await world.emit(1);
    expect(await health(id)).toMatchObject({ pending: 3, held: 0, oldest_pending_age_s: 90 });
    await disable(world, id);
    expect(await health(id)).toMatchObject({ pending: 0, held: 3, oldest_pending_age_s: 90 });
  });

  test("names the blocking event, and the first failed attempt of its round", async () => {
    const { id } = await world.subscribe();
    const [blocking = "", behind = ""] = await world.emit(2);
    await attempt(id, { agoMs: 9 * MINUTE_MS, outcome: "failed", eventId: blocking });
    const first = { agoMs: 5 * MINUTE_MS, outcome: "retry", eventId: blocking, round: 2 } as const;
    const since = await attempt(id, first);
    await attempt(id, { ...first, agoMs: MINUTE_MS });
    await passQueue(world.database.db, id);
    await world.database.db.sql`
      update outbox set state = 'waiting', attempt = 3, due_at = now(), round = 2
       where subscription_id = ${id} and event_id = ${blocking}`;
    expect(behind).not.toBe("");
    expect(await health(id)).toMatchObject({
      blocked_by: blocking,
      blocked_since: iso(since),
      blocked_attempts: 2,
    });
    await settle(world, id, "delivered");
    expect(await health(id)).toMatchObject({
      blocked_by: null,
      blocked_since: null,
      blocked_attempts: 0,
    });
  });

  test("dates the incident from the first failed attempt after the last success, not from the first permanent failure", async () => {
    const { id } = await world.subscribe();
    const incident = async () => (await world.ask("GET", `/${id}/incident`)).body;
    const [slow, quick] = [ulid(), ulid()];
    await attempt(id, { agoMs: 9 * MINUTE_MS, outcome: "retry" });
    await attempt(id, { agoMs: 8 * MINUTE_MS });
    // Events of two reviews are attempted in parallel: the one that failed first fails permanently last.
    const since = await attempt(id, { agoMs: 7 * MINUTE_MS, outcome: "retry", eventId: slow });
    await attempt(id, { agoMs: 6 * MINUTE_MS, outcome: "retry", eventId: quick });
    await attempt(id, { agoMs: 5 * MINUTE_MS, outcome: "failed", eventId: quick });
    await attempt(id, { agoMs: 4 * MINUTE_MS, outcome: "failed", eventId: slow });
    await world.database.db
      .sql`update webhook_subscriptions set consecutive_failure_count = 2 where id = ${id}`;
    expect(await incident()).toMatchObject({ since: iso(since), causes: [{ attempts: 4 }] });
    // Attempts that were in flight when the subscription was disabled end later and do not count.
    await world.database.db.sql`
      update webhook_subscriptions set state = 'disabled', disabled_reason = 'consecutive_failures',
             disabled_at = ${new Date(world.clock.now().getTime() - 3 * MINUTE_MS)} where id = ${id}`;
    await attempt(id, { agoMs: 2 * MINUTE_MS, outcome: "failed" });
    expect(await incident()).toMatchObject({ since: iso(since), causes: [{ attempts: 5 }] });
    // An enable resets the counter. After another disable through the API, the incident still has its old beginning.
    await world.ask("POST", `/${id}/enable`);
    await world.ask("POST", `/${id}/disable`);
    expect(await incident()).toMatchObject({ since: iso(since), causes: [{ attempts: 5 }] });
  });

  test("of a subscription that was disabled through the API without failures has no incident", async () => {
    const { id } = await world.subscribe();
    await attempt(id, { agoMs: 9 * MINUTE_MS, outcome: "retry" });
    await attempt(id, { agoMs: 8 * MINUTE_MS });
    await world.ask("POST", `/${id}/disable`);
    expect((await world.ask("GET", `/${id}/incident`)).body).toMatchObject({ since: null });
  });

  test("names the first permanent failure since the last success", async () => {
    const { id } = await world.subscribe();
    const counting = (failures: number) =>
      world.database.db
        .sql`update webhook_subscriptions set consecutive_failure_count = ${failures} where id = ${id}`;
    await attempt(id, { agoMs: 9 * MINUTE_MS, outcome: "failed" });
    await attempt(id, { agoMs: 8 * MINUTE_MS });
    const first = ulid();
    const later = [ulid(), ulid()];
    const at = await attempt(id, { agoMs: 7 * MINUTE_MS, outcome: "failed", eventId: first });
    await attempt(id, { agoMs: 6 * MINUTE_MS, outcome: "retry" });
    for (const eventId of later)
      await attempt(id, { agoMs: MINUTE_MS, outcome: "failed", eventId });
    await counting(3);
    expect((await health(id)).first_failure).toEqual({
      event_id: first,
      at: iso(at),
      status_code: 200,
      error_code: null,
      tls_reason: null,
    });
    await counting(0);
    expect((await health(id)).first_failure).toBeNull();
  });

  test("is not blocked by a test, which has a separate lane", async () => {
    const { id } = await world.subscribe();
    await world.ask("POST", `/${id}/test`);
    await makeWait(world.database.db, id);
    expect(await health(id)).toMatchObject({ pending: 1, blocked_by: null });
  });

  test("shows the last success, however many failures follow", async () => {
    const { id } = await world.subscribe();
    await attempt(id, { agoMs: 3 * DAY_MS });
    const last = await attempt(id, { agoMs: 2 * DAY_MS, durationMs: 250 });
    for (let i = 0; i < 5; i++) await attempt(id, { agoMs: 1000 * i, outcome: "failed" });
    expect(await health(id)).toMatchObject({
      last_success_at: iso(new Date(last.getTime() + 250)),
      success_rate_1h: 0,
      success_rate_24h: 0,
      condition: "failing",
    });
  });

  test.each(["attempts", "buckets"])("counts 24 hours in whole buckets, from %s", async (from) => {
    const { id } = await world.subscribe();
    const toFirst = DAY_MS + (world.clock.now().getTime() % 300_000);
    await attempt(id, { agoMs: toFirst + 1, outcome: "failed", durationMs: 9 });
    await attempt(id, { agoMs: toFirst, outcome: "retry", durationMs: 4 });
    await attempt(id, { agoMs: DAY_MS / 2, durationMs: 1 });
    await attempt(id, { agoMs: DAY_MS / 2, durationMs: 2 });
    await attempt(id, { agoMs: DAY_MS / 2, outcome: "interrupted", durationMs: 15_000 });
    await attempt(id, { agoMs: 0, durationMs: 3 });
    if (from === "buckets") await count();
    expect(await health(id)).toMatchObject({
      condition: "healthy",
      success_rate_1h: 1,
      success_rate_24h: 0.75,
      latency_ms_24h: { p50: 2, p95: 4, p99: 4 },
    });
    await world.database.db.sql`delete from stats_progress`;
    await world.database.db.sql`delete from attempt_stats`;
  });

  test("counts events that expired in the last 24 hours", async () => {
    const { id } = await world.subscribe();
    await world.emit(2);
    const settledAt = (ago: number) => new Date(world.clock.now().getTime() - ago);
    for (const [i, ago] of [DAY_MS + 1, DAY_MS, 0].entries())
      await world.database.db.sql`
        insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
        values (${id}, ${100 + i}, ${100 + i}, 'expired', ${10 ** i}, ${settledAt(ago)})`;
    expect(await health(id)).toMatchObject({ expired_24h: 110 });
  });
});

describe("attempts that no bucket has counted yet", () => {
  /** Records `made` attempts within one minute, each of the next entry; the second half of them failed. */
  async function burst(id: string, made: number): Promise<void> {
    const first = encodeTime(world.clock.now().getTime() - 2 * MINUTE_MS, 10);
    const last = encodeTime(world.clock.now().getTime() - MINUTE_MS - 1_000, 10);
    await world.database.db.sql`
      insert into delivery_attempts
        (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms, outcome, status_code,
         request_headers, request_body, response_truncated)
      select case when n < ${made}::int then ${first} else ${last} end || lpad(n::text, 16, '0'), ${id}, n, 'E' || n,
             'review_received', 1, 1, ${new Date(world.clock.now().getTime() - 2 * MINUTE_MS)}, 5,
             case when n > ${made / 2}::int then 'failed' else 'delivered' end, 200, '{}', '{}', false
        from generate_series(1, ${made}::int) n`;
  }

  // Only the first 1,000 attempts are read. Beyond them the shares are those of the sample.
  test.each([
    [996, 498, 498],
    [1_000, 500, 500],
    [1_004, 504, 500],
    [4_000, 4_000, 0],
  ])(
    "are %d in a minute, and counted as %d successes and %d failures, because at most 1,000 are read",
    async (made, successes, failures) => {
      const { id } = await world.subscribe();
      toNextBucket();
      world.clock.advance(4 * MINUTE_MS);
      await world.database.db.sql`
        insert into stats_progress (counted_until) values (${bucketFloor(world.clock.now())})
            on conflict (id) do update set counted_until = excluded.counted_until`;
      await burst(id, made);
      const { body } = await world.ask("GET", `/${id}/stats?step=300`);
      const points = (body["points"] as { successes: number }[]).filter((one) => one.successes > 0);
      expect(points).toEqual([expect.objectContaining({ successes, failures })]);
      expect(await health(id)).toMatchObject({ success_rate_24h: successes / made });
      await world.database.db.sql`delete from stats_progress`;
    },
  );
});

describe("counting", () => {
  const counted = (id: string) => world.database.db.sql<{ outcome: string; n: number }[]>`
    select outcome, sum(n)::int as n from attempt_stats, unnest(counts) n
     where subscription_id = ${id} and step_s = 300 group by 1 order by 1`;

  test("again, and by several processes at once, changes nothing", async () => {
    const { id } = await world.subscribe();
    for (let i = 1; i <= 5; i++) await attempt(id, { agoMs: i * 10 * MINUTE_MS });
    await attempt(id, { agoMs: 15 * MINUTE_MS, outcome: "failed" });
    await count();
    const first = [...(await counted(id))];
    expect(first).toEqual([
      { outcome: "delivered", n: 5 },
      { outcome: "failed", n: 1 },
    ]);
    world.clock.advance(6 * MINUTE_MS);
    await Promise.all([count(), count(), count()]);
    expect([...(await counted(id))]).toEqual(first);
  });

  test("gives hours and days with the same sums", async () => {
    const { id } = await world.subscribe();
    for (let i = 1; i <= 40; i++)
      await attempt(id, {
        agoMs: i * 60 * MINUTE_MS,
        durationMs: i,
        outcome: i % 4 ? "delivered" : "failed",
      });
    await world.database.db.sql`delete from stats_progress`;
    await count();
    const rows = await world.database.db.sql<{ step: number; outcome: string; n: number }[]>`
      select step_s as step, outcome, sum(n)::int as n from attempt_stats, unnest(counts) n
       where subscription_id = ${id} group by 1, 2 order by 1, 2`;
    expect([...rows]).toEqual(
      [300, 3600, 86_400].flatMap((step) => [
        { step, outcome: "delivered", n: 30 },
        { step, outcome: "failed", n: 10 },
      ]),
    );
  });

  test("recounts a bucket to include attempts that were committed late", async () => {
    const { id } = await world.subscribe();
    toNextBucket();
    await attempt(id, { agoMs: -MINUTE_MS });
    world.clock.advance(6 * MINUTE_MS);
    await count();
    expect([...(await counted(id))]).toEqual([{ outcome: "delivered", n: 1 }]);
    await attempt(id, { agoMs: 5 * MINUTE_MS });
    world.clock.advance(5 * MINUTE_MS);
    await count();
    expect([...(await counted(id))]).toEqual([{ outcome: "delivered", n: 2 }]);
  });

  test("deletes stats older than the retention time", async () => {
    const { id } = await world.subscribe();
    await attempt(id, { agoMs: 20 * MINUTE_MS });
    await count();
    world.clock.advance(4 * DAY_MS);
    await count();
    expect(await counted(id)).toHaveLength(0);
  });
});

describe("the charts", () => {
  const stats = (id: string, query: string) => world.ask("GET", `/${id}/stats${query}`);

  test("show one point per step with successes, failures, latency and backlog", async () => {
    const { id } = await world.subscribe();
    toNextBucket();
    const start = world.clock.now();
    await attempt(id, { agoMs: -1, durationMs: 5 });
    await attempt(id, { agoMs: -2, durationMs: 7, outcome: "failed" });
    await attempt(id, { agoMs: -300_000, durationMs: 9 });
    await world.emit(2);
    world.clock.advance(361_000);
    await count();
    const until = new Date(start.getTime() + 900_000);
    const range = `since=${encodeURIComponent(iso(start))}&until=${encodeURIComponent(iso(until))}`;
    const { status, body } = await stats(id, `?${range}&step=300`);
    expect(status).toBe(200);
    const point = (i: number) => iso(new Date(start.getTime() + i * 300_000));
    const none = { p50: null, p95: null, p99: null };
    const all = (ms: number) => ({ p50: ms, p95: ms, p99: ms });
    expect(body).toEqual({
      since: iso(start),
      until: iso(until),
      step: 300,
      points: [
        {
          at: point(0),
          successes: 1,
          failures: 1,
          latency_ms: { p50: 5, p95: 7, p99: 7 },
          backlog: 2,
        },
        { at: point(1), successes: 1, failures: 0, latency_ms: all(9), backlog: 0 },
        { at: point(2), successes: 0, failures: 0, latency_ms: none, backlog: 0 },
      ],
    });
  });

  test("count attempts by event if asked to, without interrupted ones", async () => {
    const { id } = await world.subscribe();
    toNextBucket();
    const start = world.clock.now();
    await attempt(id, { agoMs: -1 });
    await attempt(id, { agoMs: -2, outcome: "retry" });
    await attempt(id, { agoMs: -3, event: "note_added", outcome: "failed" });
    await attempt(id, { agoMs: -4, event: "note_added", outcome: "interrupted" });
    await attempt(id, { agoMs: -299_999, event: "note_added" });
    await attempt(id, { agoMs: -300_000, event: "review_removed" });
    world.clock.advance(600_000);
    const until = new Date(start.getTime() + 900_000);
    const range = `since=${encodeURIComponent(iso(start))}&until=${encodeURIComponent(iso(until))}&step=300`;
    const events = async () => {
      const { body } = await stats(id, `?${range}&by=event`);
      return (body["points"] as { events?: unknown }[]).map((one) => one.events);
    };
    const all = [{ note_added: 2, review_received: 2 }, { review_removed: 1 }, {}];
    expect(await events()).toEqual(all);
    await count();
    expect(await events()).toEqual(all);
    const { body } = await stats(id, `?${range}`);
    expect(Object.keys((body["points"] as object[])[0] ?? {})).not.toContain("events");
  });

  test("reject a range that the rules refuse, with the fields at fault, and accept any other", async () => {
    const { id } = await world.subscribe();
    const errors = async (query: string) => {
      const { status, body } = await stats(id, `?${query}`);
      return [status, Object.keys(body["errors"] ?? {}).toSorted()];
    };
    expect(await errors("step=0&since=x&until=2026")).toEqual([422, ["since", "step", "until"]]);
    expect(await errors("by=review")).toEqual([422, ["by"]]);
    for (const step of [299, 301, 86_700])
      expect([step, await errors(`step=${step}`)]).toEqual([step, [422, ["step"]]]);
    const longest = "since=0001-01-01T00:00:00Z&until=1970-01-02T00:00:00Z";
    expect(await errors(longest)).toEqual([200, []]);
  });
});

const MINUTE_MS = 60_000;

const DAY_MS = 86_400_000;

const iso = (at: Date) => at.toISOString().replace("Z", "+00:00");

interface Made {
  readonly agoMs: number;
  readonly outcome?: "delivered" | "retry" | "failed" | "interrupted";
  readonly durationMs?: number;
  readonly event?: string;
  readonly eventId?: string;
  readonly round?: number;
}

/** Records an attempt that started `agoMs` before now. */
async function attempt(id: string, made: Made): Promise<Date> {
  const at = new Date(world.clock.now().getTime() - made.agoMs);
  const { outcome = "delivered", eventId = ulid(), event = "review_received", round = 1 } = made;
  await addAttempt(world.database.db, id, {
    started_at: at,
    duration_ms: made.durationMs ?? 10,
    outcome,
    event_id: eventId,
    event,
    round,
    next_attempt_at: outcome === "retry" ? at : null,
  });
  return at;
}

const toNextBucket = () => world.clock.advance(300_000 - (world.clock.now().getTime() % 300_000));

const health = async (id: string) => (await world.ask("GET", `/${id}/health`)).body;

const count = () => allChunks(() => countStats(world.api.deps, world.clock.now()));
