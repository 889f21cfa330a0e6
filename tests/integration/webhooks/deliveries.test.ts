import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { startApi, type TestApi } from "../../support/api.ts";
import { addAttempt } from "../../support/attempts.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("the attempts of a subscription", () => {
  test("are complete objects, newest first", async () => {
    const { status, body } = await list();
    expect(status).toBe(200);
    expect(idsOf(body)).toEqual(newestFirst);
    expect(body["next_cursor"]).toBeNull();
    expect((body["data"] as unknown[]).at(-1)).toEqual({
      id: attempts[0]?.id,
      event_id: eventA,
      event: "review_received",
      attempt: 1,
      round: 1,
      sequence: 1,
      started_at: new Date(start).toISOString().replace("Z", "+00:00"),
      duration_ms: 12,
      outcome: "retry",
      status_code: 500,
      error_code: "http_status",
      tls_reason: null,
      request_digest: null,
      request_erased: false,
      request_headers: { "X-SVC-Attempt": "1" },
      request_body: '{"a":1}',
      response_headers: { Server: ["x", "y"] },
      response_excerpt: "oops",
      response_truncated: false,
      next_attempt_at: new Date(start + 60_000).toISOString().replace("Z", "+00:00"),
      possibly_repeated: true,
      resent: false,
    });
  });

  test("are listed page by page without gaps or repeats", async () => {
    const seen: string[] = [];
    let query = "?limit=1";
    for (let page = 0; page < 4; page++) {
      const { body } = await list(query);
      seen.push(...idsOf(body));
      query = `?limit=1&cursor=${String(body["next_cursor"])}`;
    }
    expect(seen).toEqual(newestFirst);
  });

  test.each([
    [5_000, true, false],
    [1_000, false, true],
    [1_001, true, false],
  ])(
    "are filtered by their start, also where the id names the end: at %d ms",
    async (ms, isBefore, isSince) => {
      const slow = {
        ...attemptAt(1_000, { eventId: eventB, event: "review_flagged", outcome: "failed" }),
        id: ulid(start + 13_000),
      };
      await insertAttempt(subscriptionId, slow, 9);
      const shown = async (query: string) => idsOf((await list(query)).body).includes(slow.id);
      expect([await shown(`?until=${at(ms)}`), await shown(`?since=${at(ms)}`)]).toEqual([
        isBefore,
        isSince,
      ]);
      await database.db.sql`delete from delivery_attempts where id = ${slow.id}`;
    },
  );

  test.each([
    [`event_id=${eventA}`, [1, 0]],
    ["event=review_flagged", [3, 2]],
    ["outcome=delivered", [1]],
    ["outcome=interrupted", [3]],
    [`event_id=${eventB}&outcome=failed`, [2]],
    // `since` is inclusive, `until` exclusive.
    [`since=${at(1_000)}`, [3, 2, 1]],
    [`since=${at(1_001)}`, [3, 2]],
    [`until=${at(2_000)}`, [1, 0]],
    [`until=${at(2_001)}`, [2, 1, 0]],
    [`since=${at(1_000)}&until=${at(3_000)}`, [2, 1]],
    ["since=1900-01-01T00:00:00Z", [3, 2, 1, 0]],
    ["until=1900-01-01T00:00:00Z", []],
    ["event=webhook.test", []],
  ])("are filtered by %s", async (query, expected) => {
    const { status, body } = await list(`?${query}`);
    expect(status).toBe(200);
    expect(idsOf(body)).toEqual(expected.map((i) => attempts[i]?.id ?? ""));
  });

  test("with invalid filters are a 422 that names all of them", async () => {
    const { status, body } = await list(
      "?event=nothing&event_id=%00&outcome=good&since=yesterday&until=2026-06-01&limit=0",
    );
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "event",
      "event_id",
      "limit",
      "outcome",
      "since",
      "until",
    ]);
  });
});

const start = Date.now() - 60_000;
const eventA = ulid(start);
const eventB = ulid(start + 1);
const at = (ms: number) => encodeURIComponent(new Date(start + ms).toISOString());

interface Attempt {
  readonly id: string;
  readonly eventId: string;
  readonly event: string;
  readonly outcome: "delivered" | "retry" | "failed" | "interrupted";
  readonly startedAt: Date;
}

let api: TestApi;

let token: string;

let subscriptionId: string;

const attempts: Attempt[] = [
  attemptAt(0, { eventId: eventA, event: "review_received", outcome: "retry" }),
  attemptAt(1_000, { eventId: eventA, event: "review_received", outcome: "delivered" }),
  attemptAt(2_000, { eventId: eventB, event: "review_flagged", outcome: "failed" }),
  attemptAt(3_000, { eventId: eventB, event: "review_flagged", outcome: "interrupted" }),
];

const newestFirst = attempts.map(({ id }) => id).toReversed();

beforeAll(async () => {
  const [partner] = (await addTenants(database.db)).partners;
  api = await startApi({ db: database.db });
  token = await api.login(partner.admin.email);
  const body = { label: "L", webhook_url: "http://127.0.0.1:3699/", delivery_kind: "immediate" };
  const made = await api.call("POST", "/partner/webhooks", { token, body });
  subscriptionId = String(made.body["id"]);
  for (const [i, one] of attempts.entries()) await insertAttempt(subscriptionId, one, i + 1);
  // Attempts of the same events for another subscription, which must not be listed.
  const [first] = attempts;
  if (first) await insertAttempt(ulid(), { ...first, id: ulid(start) }, 1);
});

afterAll(async () => {
  await api.stop();
});

function attemptAt(ms: number, fields: Omit<Attempt, "id" | "startedAt">): Attempt {
  return { id: ulid(start + ms), startedAt: new Date(start + ms), ...fields };
}

async function insertAttempt(subscription: string, one: Attempt, sequence: number): Promise<void> {
  const nextAttemptAt = one.outcome === "retry" ? new Date(start + 60_000) : null;
  await addAttempt(database.db, subscription, {
    id: one.id,
    sequence,
    event_id: one.eventId,
    event: one.event,
    started_at: one.startedAt,
    duration_ms: 12,
    outcome: one.outcome,
    status_code: 500,
    error_code: "http_status",
    request_headers: '{"X-SVC-Attempt":"1"}',
    request_body: '{"a":1}',
    response_headers: '{"Server":["x","y"]}',
    response_excerpt: "oops",
    next_attempt_at: nextAttemptAt,
    possibly_repeated: one.outcome === "retry",
  });
}

const list = (query = "") =>
  api.call("GET", `/partner/webhooks/${subscriptionId}/deliveries${query}`, { token });

const idsOf = (body: Readonly<Record<string, unknown>>) =>
  (body["data"] as { id: string }[]).map(({ id }) => id);
