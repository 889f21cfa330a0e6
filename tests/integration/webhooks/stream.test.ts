import { afterEach, beforeAll, describe, expect, test } from "bun:test";

import { connect as connectTo, createServer, type Socket } from "node:net";

import { ulid } from "ulid";

import { EventStreams, type STREAM_LIMITS } from "../../../src/http/event-stream.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { Problem } from "../../../src/lib/problem.ts";
import { AttemptFeed } from "../../../src/webhooks/actions/attempt-feed.ts";
import { addAttempt } from "../../support/attempts.ts";
import { listen } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";
import { disable, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

test("sends the state at once, then each new attempt once, and changes", async () => {
  const { id } = await world.subscribe();
  await attempt(id);
  const stream = await follow(id, world.tokens.admin);
  expect(stream.response.status).toBe(200);
  expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
  expect(stream.response.headers.get("cache-control")).toBe("no-store");
  await until("the first messages", () => stream.messages.length === 2);
  expect(stream.messages.map(({ event }) => event)).toEqual(["subscription", "health"]);

  const made = await attempt(id);
  await afterLooks("the attempt", () => stream.messages.length === 3);
  expect(stream.messages[2]).toMatchObject({
    event: "attempt",
    id: made,
    data: { id: made, outcome: "delivered" },
  });
  expect(JSON.stringify(stream.messages)).not.toContain("private");

  await disable(world, id);
  await afterLooks("the change and the health", () => stream.messages.length === 5);
  expect(stream.messages[3]).toMatchObject({ event: "subscription", data: { is_active: false } });
  expect(stream.messages[4]?.event).toBe("health");
  expect(stream.state.beats).toBeGreaterThan(0);
});

test("begins with the present state, although another stream was told an older one, which then gets it, too", async () => {
  const { id } = await world.subscribe();
  const first = await follow(id, world.tokens.admin);
  await until("the first messages", () => first.messages.length === 2);
  await disable(world, id);
  const second = await follow(id, world.tokens.admin);
  await until("the first messages of both", () => second.messages.length === 2);
  const isDisabled = { event: "subscription", data: { is_active: false } };
  expect(second.messages[0]).toMatchObject(isDisabled);
  await until("the change", () => first.messages.length === 3);
  expect(first.messages[2]).toMatchObject(isDisabled);
});

test.each(["the token is revoked", "the user is inactive"])("ends when %s", async (cause) => {
  const { admin } = world.tenants.partners[0];
  const { sql } = world.database.db;
  const token = await world.api.login(admin.email);
  const { id } = await world.subscribe();
  const stream = await follow(id, token);
  await until("the first messages", () => stream.messages.length === 2);
  if (cause === "the token is revoked") await world.api.call("GET", "/logout", { token });
  else await sql`update users set is_active = false where id = ${admin.id}`;
  await afterLooks("the end", () => stream.state.ended);
  await sql`update users set is_active = true where id = ${admin.id}`;
});

test("ends when the subscription is deleted", async () => {
  const { id } = await world.subscribe();
  const stream = await follow(id, world.tokens.owner);
  await until("the first messages", () => stream.messages.length === 2);
  await world.ask("DELETE", `/${id}`);
  await afterLooks("the end", () => stream.state.ended);
});

test("are limited to five per user, and closing one makes room", async () => {
  const { id } = await world.subscribe();
  const five = await Promise.all(Array.from({ length: 5 }, () => follow(id, world.tokens.owner)));
  expect(five.map(({ response }) => response.status)).toEqual([200, 200, 200, 200, 200]);
  const sixth = await follow(id, world.tokens.owner);
  expect(sixth.response.status).toBe(429);
  expect(sixth.response.headers.get("retry-after")).toBe("5");
  const somebodyElse = await follow(id, world.tokens.admin);
  expect(somebodyElse.response.status).toBe(200);
  five[0]?.close();
  await until("room", async () => {
    world.clock.advance(1_000);
    const next = await follow(id, world.tokens.owner);
    return next.response.status === 200;
  });
});

test.each(["directly", "beyond a proxy that reads on"])(
  "end where the client stopped reading, %s, and give their places to others",
  async (where) => {
    const { id } = await world.subscribe();
    const server = Number(new URL(root).port);
    const proxy = createServer((client) => {
      const upstream = connectTo(server, "127.0.0.1");
      client.pipe(upstream).pipe(client);
      for (const one of [client, upstream]) one.on("error", () => one.destroy());
      // A pipe does not pass on that its end was destroyed, and the stream would keep its place for 30 s.
      client.on("close", () => upstream.destroy());
    });
    const port = where === "directly" ? server : await listen(proxy);
    const five = await Promise.all(Array.from({ length: 5 }, () => halfOpen(port, id)));
    let refused = 0;
    await until("a place", async () => {
      world.clock.advance(LOOK_MS);
      const { response } = await follow(id, world.tokens.owner);
      if (response.status === 429) refused += 1;
      return response.status === 200;
    });
    expect(refused).toBeGreaterThan(10);
    for (const one of five) one.destroy();
    proxy.close();
  },
);

test("that are read stay open, however often one beyond the limit is refused", async () => {
  const { id } = await world.subscribe();
  const five: Awaited<ReturnType<typeof follow>>[] = [];
  // Streams of the test before may still have their places.
  await until("five streams", async () => {
    const next = await follow(id, world.tokens.owner);
    if (next.response.status === 200) five.push(next);
    return five.length === 5;
  });
  const heardBy = () => five.map(({ state, messages }) => state.beats + messages.length);
  for (let looks = 0; looks < 60; looks++) {
    expect((await follow(id, world.tokens.owner)).response.status).toBe(429);
    const before = heardBy();
    // The clock waits for the readers, because only that of the server is a fake.
    await afterLooks("the beat", () => heardBy().every((count, i) => count > (before[i] ?? 0)));
  }
  for (const { state } of five) expect(state.padding).toBeGreaterThan(1_000_000);
  expect(five.map(({ state }) => state.ended)).toEqual([false, false, false, false, false]);
});

const userOf = (userId: number, partnerId: number | null = 1) =>
  ({ userId, partnerId, impersonatorId: null, tokenKind: "access", jti: `of-${userId}` }) as const;

/** Opens streams without a connection; a stream that is not opened is the code of its error. */
function opening(stopping?: AbortSignal) {
  const streams = new EventStreams({ log: world.api.deps.log, clock: world.clock, stopping });
  return (viewer: Parameters<typeof streams.open>[0]): Response | string => {
    try {
      return streams.open(
        viewer,
        (_, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      );
    } catch (error) {
      return error instanceof Problem ? error.code : String(error);
    }
  };
}

test("of portal sessions are limited to three each and 50 per creator, besides the five of the creator", async () => {
  const begin = opening();
  const refused = "rate_limited";
  const [first] = [begin(sessionOf(0)), begin(sessionOf(0)), begin(sessionOf(0))];
  expect(begin(sessionOf(0))).toBe(refused);
  for (let i = 0; i < 47; i++) expect(begin(sessionOf(1 + i))).toBeInstanceOf(Response);
  expect(begin(sessionOf(48))).toBe(refused);
  // Sessions of links that an operator created act as the owner, but count for the operator.
  expect(begin(sessionOf(100, 3, 9))).toBeInstanceOf(Response);
  expect(begin(sessionOf(200, 2))).toBeInstanceOf(Response);
  for (let i = 0; i < 5; i++) expect(begin(userOf(1))).toBeInstanceOf(Response);
  expect(begin(userOf(1))).toBe(refused);
  if (first instanceof Response) await first.body?.cancel();
  await until("room", () => begin(sessionOf(0)) instanceof Response);
  expect([begin(sessionOf(0)), begin(sessionOf(48))]).toEqual([refused, refused]);
});

const sessionOf = (i: number, maker = 1, operator: number | null = null) =>
  ({
    userId: maker,
    partnerId: maker,
    impersonatorId: operator,
    tokenKind: "portal",
    jti: `session-${i}`,
  }) as const;

/** Viewers that reach each limit. */
const VIEWERS: Record<
  Exclude<keyof typeof STREAM_LIMITS, "keptForOperators">,
  (i: number) => ReturnType<typeof userOf> | ReturnType<typeof sessionOf>
> = {
  perProcess: (i) => userOf(i, i),
  perPartner: (i) => userOf(i),
  perUser: () => userOf(1),
  perPortalSession: () => sessionOf(0),
  perPortalMaker: (i) => sessionOf(i),
};

test.each(Object.entries(VIEWERS))(
  "at the limit %s end after 15 s in which nothing of them was taken, and no other does",
  async (_limit, viewer) => {
    const { clock, api } = world;
    const streams = new EventStreams({ log: api.deps.log, clock });
    const ended = new Set<number>();
    let count = 0;
    const begin = () => {
      const i = count;
      const { body } = streams.open(viewer(i), async (sink, signal) => {
        for (; !signal.aborted; await clock.sleep(LOOK_MS, signal)) sink.beat();
        ended.add(i);
      });
      count += 1;
      return body;
    };
    const first = begin()?.getReader();
    const reading = (async () => {
      for (;;) if ((await first?.read())?.done !== false) return;
    })();
    const beginAll = () => {
      for (;;) begin();
    };
    expect(beginAll).toThrow(Problem);
    const most = count;
    for (let ms = 0; ms < 15_000; ms += LOOK_MS) {
      expect(ended.size).toBe(0);
      expect(begin).toThrow(Problem);
      await until("the streams sleep", () => clock.sleepers >= most);
      clock.advance(LOOK_MS);
      await until("the beat", () => ended.size > 0 || clock.sleepers >= most);
    }
    await until("the others to end", () => ended.size === most - 1);
    expect(ended.has(0)).toBe(false);
    begin();
    await first?.cancel();
    await reading;
  },
);

test("of the people of one partner are limited to 50, ten are kept for operators, and all end with the process", async () => {
  const stopping = new AbortController();
  const begin = opening(stopping.signal);
  const open = Array.from({ length: 50 }, (_, i) => begin(userOf(i)));
  expect(begin(userOf(50))).toBe("rate_limited");
  for (let i = 0; i < 140; i++) open.push(begin(userOf(100 + i, 2 + (i % 4))));
  expect(begin(userOf(300, 6))).toBe("overloaded");
  for (let i = 0; i < 10; i++) open.push(begin(userOf(400 + i, null)));
  expect(begin(userOf(410, null))).toBe("overloaded");
  stopping.abort();
  for (const one of open) expect(one).toBeInstanceOf(Response);
  await Promise.all(open.map((one) => one instanceof Response && one.text()));
});

describe("with bodies, or after an attempt", () => {
  const attempts = ({ messages }: { messages: readonly Message[] }) =>
    messages.filter(({ event }) => event === "attempt");
  const idsOf = (stream: { messages: readonly Message[] }) =>
    attempts(stream).map(({ data }) => String(data["id"]));

  /** Inserts `count` attempts of one instant in one statement. */
  async function attemptsAt(id: string, at: Date, count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => ulid(at.getTime()));
    await world.database.db.sql`
      insert into delivery_attempts
        (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms, outcome, status_code,
         request_headers, request_body, response_truncated)
      select made, ${id}, 1, ${ulid()}, 'review_received', 1, 1, ${at}, 5, 'delivered', 200, '{"X-SVC-Attempt":"1"}',
             '{"private":"body"}', false from unnest(${ids}::text[]) as made`;
    return ids.toSorted();
  }

  test("sends each attempt from now on with its exact body and headers", async () => {
    const { id } = await world.subscribe();
    await attempt(id);
    const stream = await follow(id, world.tokens.admin, { query: "?include=body" });
    await until("the first messages", () => stream.messages.length === 2);
    const [made = ""] = await attemptsAt(id, world.clock.now(), 1);
    await afterLooks("the attempt", () => stream.messages.length === 3);
    expect(stream.messages[2]).toMatchObject({
      event: "attempt",
      id: made,
      data: {
        id: made,
        request_headers: { "X-SVC-Attempt": "1" },
        request_body: '{"private":"body"}',
      },
    });
  });

  test("sends every attempt once, however many are committed between two polls", async () => {
    const { id } = await world.subscribe();
    const stream = await follow(id, world.tokens.owner, { query: "?include=body" });
    await until("the first messages", () => stream.messages.length === 2);
    const made: string[] = [];
    for (let second = 0; second < 4; second++) {
      made.push(...(await attemptsAt(id, world.clock.now(), 450)));
      await afterLooks("all of them", () => attempts(stream).length === made.length);
    }
    expect(idsOf(stream)).toEqual(made);
  });

  /** Starts a feed that is polled by hand, and collects the ids that it sends. */
  async function feedOf(id: string) {
    const { clock, database } = world;
    const options = { subscriptionId: id, withBodies: true, after: undefined };
    const feed = new AttemptFeed({ db: database.db, clock }, options, new AbortController().signal);
    const told: string[] = [];
    const sink = {
      send: (message: Uint8Array) =>
        void told.push(
          ...Buffer.from(message)
            .toString()
            .matchAll(/^id: (.*)$/gm)
            .map(([, one = ""]) => one),
        ),
      beat: () => {},
      drained: async () => {},
    };
    await feed.start();
    return { told, look: () => feed.sendNew(sink) };
  }

  test.each([
    [30_000, true],
    [30_001, false],
  ])("sends an attempt that is committed %d ms after its start: %p", async (lateMs, isTold) => {
    const { id } = await world.subscribe();
    const { told, look } = await feedOf(id);
    const begun = world.clock.now();
    world.clock.advance(lateMs);
    await look();
    const late = await attempt(id, begun);
    const next = await attempt(id);
    await look();
    expect(told.toSorted()).toEqual((isTold ? [late, next] : [next]).toSorted());
  });

  test("resumes after the last attempt that a client has received, at least once", async () => {
    const { id } = await world.subscribe();
    const long = await attempt(id);
    world.clock.advance(31_000);
    const before = await attempt(id);
    world.clock.advance(2_000);
    const heard = await attempt(id);
    const missed = await attemptsAt(id, world.clock.now(), 150);
    world.clock.advance(3_600_000);
    for (const query of ["?include=body", ""]) {
      const stream = await follow(id, world.tokens.owner, { query, after: heard });
      await until("all", () => attempts(stream).length === 151);
      expect(new Set(idsOf(stream))).toEqual(new Set([before, ...missed]));
      expect(idsOf(stream)).not.toContain(long);
      expect(JSON.stringify(stream.messages).includes("private")).toBe(query !== "");
      const live = await attempt(id);
      await afterLooks("what follows", () => idsOf(stream).at(-1) === live);
      stream.close();
      await world.database.db.sql`delete from delivery_attempts where id = ${live}`;
    }
  });

  test("resumes from its start if the connection ended before the first attempt", async () => {
    const { id } = await world.subscribe();
    const first = await follow(id, world.tokens.owner, { query: "?include=body" });
    await until("the first messages", () => first.messages.length === 2);
    first.close();
    const missed = await attempt(id);
    world.clock.advance(60_000);
    const again = await follow(id, world.tokens.owner, {
      query: "?include=body",
      after: first.state.bookmark,
    });
    await until("the attempt", () => attempts(again).length === 1);
    expect(idsOf(again)).toEqual([missed]);
  });

  test("waits for a client that does not read, and then sends everything", async () => {
    const { id } = await world.subscribe();
    const first = await attempt(id);
    const body = JSON.stringify({ private: "x".repeat(30_000) });
    const many = await attemptsAt(id, world.clock.now(), 500);
    await world.database.db.sql`
      update delivery_attempts set request_body = ${body} where subscription_id = ${id} and id <> ${first}`;
    const response = await fetch(`${root}${BASE_PATH}/partner/webhooks/${id}/stream?include=body`, {
      headers: { Authorization: `Bearer ${world.tokens.owner}`, "Last-Event-ID": first },
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    // Delivery is at least once, so the stream may repeat the first attempt.
    const missing = new Set(many);
    for (let rest = ""; missing.size > 0;) {
      const { value = "", done } = (await reader?.read()) ?? { done: true };
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("id: ")) missing.delete(line.slice(4));
    }
    await reader?.cancel();
    expect(missing.size).toBe(0);
  });

  test.each([
    ["?include=bodies", undefined, "include"],
    ["", "yesterday", "Last-Event-ID"],
  ])("rejects %s %s", async (query, after, field) => {
    const { id } = await world.subscribe();
    const { status, body } = await world.api.call("GET", `/partner/webhooks/${id}/stream${query}`, {
      token: world.tokens.owner,
      ...(after !== undefined && { headers: { "Last-Event-ID": after } }),
    });
    expect([status, Object.keys(body["errors"] as object)]).toEqual([422, [field]]);
  });

  test("is only for the tenant of the subscription", async () => {
    const { id } = await world.subscribe();
    const { status } = await world.ask("GET", `/${id}/stream?include=body`, { as: "other" });
    expect(status).toBe(404);
  });
});

let root: string;

const open: AbortController[] = [];

beforeAll(async () => {
  root = world.api.listen();
});

afterEach(() => {
  for (const one of open.splice(0)) one.abort();
});

interface Message {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

/** Follows a subscription over a real connection. */
async function follow(
  id: string,
  token: string,
  { query = "", after }: { query?: string; after?: string | undefined } = {},
) {
  const control = new AbortController();
  open.push(control);
  const response = await fetch(`${root}${BASE_PATH}/partner/webhooks/${id}/stream${query}`, {
    headers: {
      Authorization: `Bearer ${token}`,
      ...(after !== undefined && { "Last-Event-ID": after }),
    },
    signal: control.signal,
  });
  const messages: Message[] = [];
  const state = { beats: 0, padding: 0, ended: false, bookmark: undefined as string | undefined };
  const reading = async () => {
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk);
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts)
        if (part.startsWith(":  ")) state.padding += part.length;
        else if (part.startsWith(":")) state.beats += 1;
        else if (part.startsWith("id: ") && !part.includes("\n")) state.bookmark = part.slice(4);
        else messages.push(messageOf(part));
    }
  };
  const reader = reading().then(
    () => void (state.ended = true),
    () => {},
  );
  return { response, messages, state, reader, close: () => control.abort() };
}

/** Opens a stream of a subscription, and stops reading at its first bytes. */
async function halfOpen(port: number, id: string): Promise<Socket> {
  const socket = connectTo(port, "127.0.0.1");
  socket.write(
    `GET ${BASE_PATH}/partner/webhooks/${id}/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${world.tokens.owner}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  socket.on("error", () => {});
  return socket;
}

function messageOf(part: string): Message {
  const field = (name: string) =>
    part
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  return {
    event: field("event") ?? "",
    id: field("id"),
    data: JSON.parse(field("data") ?? "null"),
  };
}

const attempt = (id: string, at = world.clock.now()) =>
  addAttempt(world.database.db, id, { started_at: at, request_body: '{"private":"body"}' });

const LOOK_MS = 1_300;

/** Time after which the clock is moved again, if a poll has not happened yet. */
const LOOK_AGAIN_MS = 500;

/** Moves the clock until polls have made the condition true. One move may be too early, before the poll loop sleeps. */
async function afterLooks(what: string, holds: () => boolean) {
  let wokenAt = -LOOK_AGAIN_MS;
  await until(what, () => {
    if (holds()) return true;
    if (world.clock.sleepers > 0 && performance.now() - wokenAt > LOOK_AGAIN_MS) {
      wokenAt = performance.now();
      world.clock.advance(LOOK_MS);
    }
    return false;
  });
}
