import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { FIRST_CURSOR, readDeliveryCursor } from "../../../src/webhooks/delivery-list-model.ts";
import { eventsOfNumbers } from "../../../src/webhooks/queries/events.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { addAttempt } from "../../support/attempts.ts";
import { forceHistory } from "../../support/history.ts";
import { passQueue } from "../../support/outbox.ts";
import { disable, settle, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("the deliveries of a subscription", () => {
  test("are one per event, ordered by the newest attempt, or by the entry if there is none", async () => {
    expect(letters(await list())).toBe("DACBFE");
  });

  test("contain the event, its review, the number of events that it blocks, and its attempts in ascending order", async () => {
    const [, a, c] = await list();
    expect(a).toMatchObject({
      event_id: events[0],
      event: "review_received",
      sequence: 1,
      state: "delivered",
      review_id: reviewIds[0],
      external_review_id: "emitted-1",
      waiting_behind: null,
      attempts: [
        {
          attempt: 1,
          outcome: "retry",
          status_code: 503,
          error_code: "http_status",
          duration_ms: 7,
        },
        { attempt: 2, outcome: "delivered", status_code: 204, error_code: null },
      ],
    });
    expect(a?.["rate"]).toBeNumber();
    expect(a?.["store_name"]).toBeString();
    expect(a?.["settled_at"]).toBeString();
    expect(a?.attempts[0]).not.toHaveProperty("request_body");
    expect(c).toMatchObject({ state: "waiting", waiting_behind: 3, settled_at: null });
  });

  test("count only blocked events of the same review if the order is by review", async () => {
    await world.ask("PATCH", `/${id}`, { body: { ordering: "review" } });
    const [c] = await list("?state=waiting");
    await world.ask("PATCH", `/${id}`, { body: { ordering: "subscription" } });
    expect(c).toMatchObject({ event_id: events[2], waiting_behind: 0 });
  });

  test.each([
    ["event_id", () => `event_id=${events[3]}`, "D"],
    ["event_id of none", () => `event_id=${ulid()}`, ""],
    ["review_id", () => `review_id=${reviewIds[1]}`, "B"],
    ["review_id of none", () => "review_id=2147483647", ""],
    ["external_review_id", () => "external_review_id=emitted-3", "C"],
    ["external_review_id of none", () => "external_review_id=emitted-33", ""],
    [
      "review_id and another external_review_id",
      () => `review_id=${reviewIds[1]}&external_review_id=emitted-3`,
      "",
    ],
    ["review_id and event_id", () => `review_id=${reviewIds[1]}&event_id=${events[1]}`, "B"],
    ["review_id and another event_id", () => `review_id=${reviewIds[1]}&event_id=${events[0]}`, ""],
    ["sequence", () => "sequence=4", "D"],
    ["sequence of a range", () => "sequence=2-4", "DCB"],
    ["sequence of none", () => "sequence=7-9", ""],
    ["sequences", () => "sequence=4,1-2,2", "DAB"],
    ["sequence and event_id", () => `sequence=1-3&event_id=${events[1]}`, "B"],
    ["sequence and another event_id", () => `sequence=3-4&event_id=${events[1]}`, ""],
    ["sequence and review_id", () => `sequence=2-3&review_id=${reviewIds[1]}`, "B"],
    ["sequence and another review_id", () => `sequence=1&review_id=${reviewIds[1]}`, ""],
    ["sequence and state", () => "sequence=1-4&state=pending", "D"],
    ["sequence and outcome", () => "sequence=1-3&outcome=not_delivered", "CBA"],
    ["event", () => "event=review_received", "DACBFE"],
    ["another event", () => "event=note_added", ""],
    ["event_id and another event", () => `event_id=${events[3]}&event=note_added`, ""],
    ["state pending", () => "state=pending", "FED"],
    ["state waiting", () => "state=waiting", "C"],
    ["state held", () => "state=held", ""],
    ["state delivered", () => "state=delivered", "A"],
    ["state failed", () => "state=failed", "B"],
    ["state skipped", () => "state=skipped", ""],
    ["outcome delivered", () => "outcome=delivered", "A"],
    ["outcome retry", () => "outcome=retry", "CA"],
    ["outcome failed", () => "outcome=failed", "B"],
    ["outcome interrupted", () => "outcome=interrupted", "D"],
    ["all that was not delivered", () => "outcome=not_delivered", "DCBA"],
    ["state of what was tried before", () => "outcome=retry&state=delivered", "A"],
    ["status of one code", () => "status=503", "A"],
    ["status of the code below", () => "status=502", ""],
    ["status class", () => "status=5xx", "A"],
    ["status class 2xx", () => "status=2xx", "A"],
    ["status class 4xx", () => "status=4xx", "B"],
    ["status none", () => "status=none", "DC"],
    ["status of another outcome", () => "status=503&outcome=failed", ""],
    ["text of the error code", () => "q=TIME", "C"],
    ["text of the answer", () => "q=back%20later", "A"],
    ["text with a wildcard in it", () => "q=%25", ""],
    ["text of a review's event", () => `q=gone&review_id=${reviewIds[1]}`, "B"],
    ["text of another review's event", () => `q=gone&review_id=${reviewIds[0]}`, ""],
    ["since, which belongs to it", () => `since=${at(4_000)}`, "DA"],
    ["since, just behind it", () => `since=${at(4_001)}`, "D"],
    ["until, which does not belong to it", () => `until=${at(4_000)}&outcome=not_delivered`, "CBA"],
    [
      "since and until around one attempt",
      () => `since=${at(1_000)}&until=${at(1_001)}&status=5xx`,
      "A",
    ],
    ["a time in which nothing was", () => "until=1970-01-01T00:00:01Z", ""],
  ])("are filtered by %s", async (_name, query, expected) => {
    expect(letters(await list(`?${query()}`))).toBe(expected);
  });

  test.each([
    ["the newest attempt", "", { A: 4_000, D: 5_000 }],
    ["the newest attempt that matches", "?outcome=not_delivered", { A: 1_000, B: 2_000 }],
    ["the queue time", "?state=pending", { D: 0, E: 0 }],
    ["a number", "?sequence=1&outcome=retry", { A: 1_000 }],
  ])("have the time by which they are listed: %s", async (_name, query, expected) => {
    const rows = await list(query);
    for (const [letter, offset] of Object.entries(expected)) {
      const row = rows.find((one) => letters([one]) === letter);
      expect([letter, Date.parse(String(row?.["listed_at"])) - start]).toEqual([letter, offset]);
    }
  });

  test("in a queued state are filtered by the time of their entries", async () => {
    expect(letters(await list(`?until=${at(1_000)}&state=pending`))).toBe("FED");
  });

  test.each([1, 2, 5, 6, 7])("are listed %i by %i without gaps or repeats", async (limit) => {
    let seen = "";
    let query = `?limit=${limit}`;
    for (let page = 0; page < 8 && query !== ""; page++) {
      const { body } = await world.ask("GET", `/${id}/messages${query}`);
      const rows = body["data"] as Shown[];
      expect(rows.length).toBeLessThanOrEqual(limit);
      seen += letters(rows);
      const next = body["next_cursor"];
      query = typeof next === "string" ? `?limit=${limit}&cursor=${next}` : "";
    }
    expect(seen).toBe("DACBFE");
  });

  test("of one review are listed page by page", async () => {
    const { body } = await world.ask("GET", `/${id}/messages?limit=1&external_review_id=emitted-1`);
    expect(letters(body["data"] as Shown[])).toBe("A");
    expect(body["next_cursor"]).toBeNull();
  });

  test("are held while the subscription is disabled", async () => {
    await disable(world, id);
    const held = letters(await list("?state=held"));
    const waiting = letters(await list("?state=waiting"));
    await world.database.db.sql`
      update webhook_subscriptions set state = 'active', disabled_at = null, disabled_reason = null where id = ${id}`;
    expect({ held, waiting }).toEqual({ held: "FEDC", waiting: "" });
  });

  test("with invalid filters are a 422 that names all of them", async () => {
    const text = "x".repeat(201);
    const query = `review_id=0&external_review_id=&event=no&event_id=1&sequence=0&state=no&outcome=no&status=600&q=${text}&since=no&until=no&limit=101&cursor=no`;
    const { status, body } = await world.ask("GET", `/${id}/messages?${query}`);
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "cursor",
      "event",
      "event_id",
      "external_review_id",
      "limit",
      "outcome",
      "q",
      "review_id",
      "sequence",
      "since",
      "state",
      "status",
      "until",
    ]);
  });

  test.each(["17-517", "1,17-516", "25-17", "9007199254740992", "1.5", "01", "1,", "1,,2"])(
    "with the sequence %s are a 422 that names it",
    async (numbers) => {
      const { status, body } = await world.ask("GET", `/${id}/messages?sequence=${numbers}`);
      expect([status, Object.keys(body["errors"] ?? {})]).toEqual([422, ["sequence"]]);
    },
  );

  test.each([
    `q=${"x".repeat(200)}`,
    `external_review_id=${"x".repeat(255)}`,
    "status=599",
    "sequence=17-516",
    "sequence=1,17-515",
    "sequence=9007199254740991",
    "limit=100",
  ])("accept a filter at its limit: %.20s", async (query) => {
    const { status } = await world.ask("GET", `/${id}/messages?${query}`);
    expect(status).toBe(200);
  });
});

describe("messages of another tenant", () => {
  test("are not found by a review, its external id or their numbers", async () => {
    const ofReview = [`review_id=${reviewIds[0]}`, "external_review_id=emitted-1"];
    for (const query of [...ofReview, "sequence=1-500"]) {
      const path = `/${otherSubscription}/messages?${query}`;
      const { status, body } = await world.ask("GET", path, { as: "other" });
      expect(status).toBe(200);
      expect(body["data"]).toEqual([]);
    }
  });
});

describe("the cursor of messages", () => {
  test("contains a position in both walks, and only its canonical form is valid", () => {
    expect(readDeliveryCursor(`${FIRST_CURSOR.attempt}.${FIRST_CURSOR.entry}`)).toEqual(
      FIRST_CURSOR,
    );
    for (const text of [
      "",
      FIRST_CURSOR.attempt,
      `${FIRST_CURSOR.attempt}.01`,
      `${FIRST_CURSOR.attempt}.9007199254740992`,
      `8${FIRST_CURSOR.attempt.slice(1)}.1`,
    ])
      expect(readDeliveryCursor(text)).toBeUndefined();
  });
});

describe("an event that was skipped and is queued again", () => {
  test("is one row, at its new entry", async () => {
    const { id: fresh } = await world.subscribe({ events: ["review_received"] });
    const [first = ""] = await world.emit(1);
    await disable(world, fresh);
    await world.ask("POST", `/${fresh}/enable`, { body: { held: "skip" } });
    const skipped = await list("", fresh);
    expect(skipped).toMatchObject([{ event_id: first, state: "skipped", attempts: [] }]);
    expect(await list("?state=skipped", fresh)).toHaveLength(1);
    await world.ask("POST", `/${fresh}/deliveries/${first}/redeliver`);
    const queued = await list("", fresh);
    expect(queued).toMatchObject([
      { event_id: first, state: "pending", sequence: 1, attempts: [] },
    ]);
    expect(await list("?state=skipped", fresh)).toEqual([]);
    expect(await list("?state=pending", fresh)).toHaveLength(1);
  });
});

describe("the number of an event", () => {
  const subscribe = async () => (await world.subscribe({ events: ["review_received"] })).id;
  /** Takes positions of the queue as tests and later rounds do. */
  const takePositions = (fresh: string, count: number) => world.database.db.sql`
    update outbox_sequences set last_sequence = last_sequence + ${count} where subscription_id = ${fresh}`;
  const eventsOf = (fresh: string, numbers: readonly number[], count?: number) =>
    eventsOfNumbers(world.database.db, fresh, numbers, count);

  test("counts neither tests nor rounds, which have positions of their own", async () => {
    const fresh = await subscribe();
    const [one = "", two = ""] = await world.emit(2);
    const tested = await world.ask("POST", `/${fresh}/test`);
    await settle(world, fresh, "failed");
    await world.ask("POST", `/${fresh}/deliveries/${one}/redeliver`);
    await settle(world, fresh, "delivered");
    const [three = "", four = ""] = await world.emit(2);
    const shown = (await list("", fresh)).map((row) => [row.event_id, row["sequence"]] as const);
    expect(new Map(shown)).toEqual(
      new Map([
        [one, 1],
        [two, 2],
        [String(tested.body["event_id"]), 3],
        [three, 3],
        [four, 4],
      ]),
    );
    const { body } = await world.ask("GET", `/${fresh}/deliveries/${one}`);
    expect(body).toMatchObject({ sequence: 1, attempts: [{ sequence: 1 }, { sequence: 4 }] });
    const found = await list("?sequence=3", fresh);
    expect(found).toMatchObject([{ event_id: three, state: "pending", attempts: [] }]);
  });

  test("finds it wherever positions belong to no event, also after other events were deleted", async () => {
    const fresh = await subscribe();
    const events: string[] = [];
    for (const taken of [0, 1, 0, 7, 300, 0, 2, 1, 1, 40, 0, 0, 5, 9_000, 3]) {
      await takePositions(fresh, taken);
      events.push(...(await world.emit(2)));
    }
    const numbers = events.map((_, i) => i + 1);
    expect(await eventsOf(fresh, numbers)).toEqual(events);
    expect(await eventsOf(fresh, numbers.toReversed())).toEqual(events.toReversed());
    const gone = new Set(events.filter((_, i) => [0, 6, 7, 8, 29].includes(i)));
    await forceHistory(
      world.database.db,
      (sql) => sql`delete from review_history where event_id = any(${[...gone]})`,
    );
    const left = (some: readonly string[]) => some.filter((one) => !gone.has(one));
    expect(await eventsOf(fresh, [...numbers, 31, 2 ** 53 - 1])).toEqual(left(events));
    for (const first of numbers)
      expect([first, await eventsOf(fresh, [first], 4)]).toEqual([
        first,
        left(events.slice(first - 1, first + 3)),
      ]);
  });

  test("is its position if version 0.1.0 recorded it, and counts on from there", async () => {
    const fresh = await subscribe();
    const [one = "", two = ""] = await world.emit(2);
    await takePositions(fresh, 3);
    const [six = ""] = await world.emit(1);
    await forceHistory(world.database.db, async (sql) => {
      await sql`update review_history set unlogged = null where event_id = any(${[one, two, six]})`;
      await sql`update outbox_sequences set unlogged = 0 where subscription_id = ${fresh}`;
    });
    await takePositions(fresh, 2);
    const [seven = ""] = await world.emit(1);
    const all = Array.from({ length: 9 }, (_, i) => i + 1);
    expect(await Promise.all(all.map((number) => eventsOf(fresh, [number])))).toEqual([
      [one],
      [two],
      [],
      [],
      [],
      [six],
      [seven],
      [],
      [],
    ]);
  });
});

describe("an event that is settled while its list is read", () => {
  // The list reads the first table together with the entries, and the second with the reviews of the found events.
  test.each(["outbox_skips", "stores"])("is in the list, which waits for %s", async (table) => {
    const { id: fresh } = await world.subscribe({ events: ["review_received"] });
    const emitted = await world.emit(1);
    const { db } = world.database;
    let listing: Promise<Shown[]> = Promise.resolve([]);
    await db.transaction(async (tx) => {
      await tx.sql`lock table ${tx.sql(table)} in access exclusive mode`;
      listing = list("", fresh);
      await untilSomebodyWaits(db);
      await settle(world, fresh, "delivered");
    });
    expect(await listing).toMatchObject([{ event_id: emitted[0] }]);
  });
});

describe("the events that wait for a batch", () => {
  test("are listed newest first, page by page, with the filters of events", async () => {
    const other = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
    const waiting = await world.emit(3);
    const listed = async (query: string) => {
      const path = `/${other.id}/messages?state=waiting_for_batch${query}`;
      const { body } = await world.ask("GET", path);
      const rows = body["data"] as Record<string, unknown>[];
      return { rows, ids: rows.map((row) => row["event_id"]), next: body["next_cursor"] };
    };
    const newest = waiting.toReversed();
    const first = await listed("&limit=2");
    expect(first.ids).toEqual(newest.slice(0, 2));
    const rest = await listed(`&limit=2&cursor=${String(first.next)}`);
    expect([rest.ids, rest.next]).toEqual([newest.slice(2), null]);
    const [row] = first.rows;
    expect(row).toMatchObject({
      event: "review_received",
      sequence: 0,
      state: "waiting_for_batch",
      listed_at: row?.["created_at"],
      settled_at: null,
      waiting_behind: null,
      attempts: [],
    });
    expect(row?.["store_name"]).toBeString();
    const { review_id: reviewId, external_review_id: externalId, created_at: at } = row ?? {};
    const since = encodeURIComponent(String(at));
    for (const [query, count] of [
      [`&event_id=${newest[0]}`, 1],
      [`&review_id=${String(reviewId)}&external_review_id=${String(externalId)}`, 1],
      ["&event=review_received", 3],
      ["&event=note_added", 0],
      [`&until=${encodeURIComponent("2000-01-01T00:00:00Z")}`, 0],
      [`&event_id=${newest[0]}&since=${since}`, 1],
      [`&event_id=${newest[0]}&until=${since}`, 0],
      ["&sequence=1", 0],
      ["&outcome=delivered", 0],
    ] as const)
      expect([query, (await listed(query)).rows.length]).toEqual([query, count]);
    const missing = await world.ask("GET", `/${other.id}/deliveries/${newest[0]}`);
    expect(missing.status).toBe(404);
    await world.ask("DELETE", `/${other.id}`);
  });
});

/** Events A to F in the order of their sequence, each of a review of its own. */
let events: string[];

let reviewIds: number[];
let start: number;
const at = (offset: number) => encodeURIComponent(new Date(start + offset).toISOString());

interface Shown {
  readonly event_id: string;
  readonly state: string;
  readonly attempts: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

interface Tried {
  readonly outcome: "delivered" | "retry" | "failed" | "interrupted";
  readonly status?: number;
  readonly error?: string;
  readonly said?: string;
}

let id: string;

let otherSubscription: string;

let ms = 0;

beforeAll(async () => {
  ({ id } = await world.subscribe({ events: ["review_received"] }));
  events = await world.emit(6);
  start = world.clock.now().getTime();
  const rows = await world.database.db.sql<{ id: number }[]>`
    select review_id as id from review_history where event_id = any(${events}) order by id`;
  reviewIds = rows.map((row) => row.id);
  const [a = "", b = "", c = "", d = ""] = events;
  await attempt(a, {
    outcome: "retry",
    status: 503,
    error: "http_status",
    said: "Come back later",
  });
  await attempt(b, { outcome: "failed", status: 410, error: "http_status", said: "gone" });
  await attempt(c, { outcome: "retry", error: "timeout" });
  await attempt(a, { outcome: "delivered", status: 204 });
  await attempt(d, { outcome: "interrupted" });
  otherSubscription = await addOther();
});

/** Records an attempt a second after the last one, and updates the queued entry accordingly. */
async function attempt(eventId: string, { outcome, status, error, said }: Tried): Promise<void> {
  const { sql } = world.database.db;
  const startedAt = new Date(start + (ms += 1_000));
  const [entry] = await sql<{ sequence: number; attempt: number }[]>`
    select sequence, attempt from queued_entries where event_id = ${eventId} and subscription_id = ${id}`;
  const isEnd = outcome === "delivered" || outcome === "failed";
  await addAttempt(world.database.db, id, {
    sequence: entry?.sequence ?? 0,
    event_id: eventId,
    attempt: entry?.attempt ?? 1,
    started_at: startedAt,
    duration_ms: 7,
    outcome,
    status_code: status ?? null,
    error_code: error ?? null,
    response_excerpt: said ?? null,
    next_attempt_at: outcome === "retry" ? startedAt : null,
    ...(isEnd && { payload_mode: "full", recorded_at: startedAt }),
  });
  await passQueue(world.database.db, id);
  if (isEnd) await sql`delete from outbox where event_id = ${eventId} and subscription_id = ${id}`;
  if (outcome === "retry")
    await sql`
      update outbox set state = 'waiting', due_at = ${startedAt}, attempt = attempt + 1
       where event_id = ${eventId} and subscription_id = ${id}`;
}

/** Creates a subscription of the other partner, with an attempt of the first event. */
async function addOther(): Promise<string> {
  const body = { label: "O", webhook_url: "http://127.0.0.1:3699/o", delivery_kind: "immediate" };
  const made = await world.ask("POST", "", { body, as: "other" });
  const other = String(made.body["id"]);
  const startedAt = new Date(start);
  await addAttempt(world.database.db, other, {
    event_id: events[0] ?? "",
    started_at: startedAt,
    payload_mode: "full",
    recorded_at: startedAt,
  });
  return other;
}

async function list(query = "", subscription = id): Promise<Shown[]> {
  const { status, body, text } = await world.ask("GET", `/${subscription}/messages${query}`);
  expect(text).toBeString();
  expect(status).toBe(200);
  return body["data"] as Shown[];
}

/** Returns the letters of the listed events. */
const letters = (rows: readonly Shown[]): string =>
  rows.map(({ event_id }) => "ABCDEF"[events.indexOf(event_id)] ?? "?").join("");
