import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { connect } from "../../db/client.ts";
import { EventStreams } from "../../src/http/event-stream.ts";
import { BASE_PATH } from "../../src/http/base-path.ts";
import { Problem } from "../../src/lib/problem.ts";
import { watchSubscription, WatchedSubscriptions } from "../../src/webhooks/actions/watch.ts";
import { subscriptionById } from "../../src/webhooks/queries/subscriptions.ts";
import { until } from "../support/receiver.ts";
import { disable, startWebhooks, type WebhookWorld } from "../support/webhooks.ts";

let world: WebhookWorld;
let root: string;
const open: AbortController[] = [];
beforeAll(async () => {
  world = await startWebhooks();
  root = world.api.listen();
});
afterEach(() => {
  for (const one of open.splice(0)) one.abort();
});
afterAll(() => world.stop());

interface Message {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

/** Follows a subscription over a real connection. */
async function follow(id: string, token: string) {
  const control = new AbortController();
  open.push(control);
  const response = await fetch(`${root}${BASE_PATH}/partner/webhooks/${id}/stream`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: control.signal,
  });
  const messages: Message[] = [];
  const state = { beats: 0, ended: false };
  const reading = async () => {
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk);
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts)
        if (part.startsWith(":")) state.beats += 1;
        else messages.push(messageOf(part));
    }
  };
  const reader = reading().then(
    () => void (state.ended = true),
    () => {},
  );
  return { response, messages, state, reader, close: () => control.abort() };
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

async function attempt(id: string): Promise<string> {
  const at = world.clock.now();
  const attemptId = ulid(at.getTime());
  await world.database.db.sql`
    insert into delivery_attempts
      (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms, outcome, status_code,
       request_headers, request_body, response_truncated)
    values (${attemptId}, ${id}, 1, ${ulid()}, 'review_received', 1, 1, ${at}, 5, 'delivered', 200, '{}',
            '{"private":"body"}', false)`;
  return attemptId;
}

/** Lets the stream look again. */
async function poll() {
  await until("the stream sleeps", () => world.clock.sleepers > 0);
  world.clock.advance(1_000);
}

test("tells the state at once, then each new attempt once, and what changes", async () => {
  const { id } = await world.subscribe();
  await attempt(id);
  const stream = await follow(id, world.tokens.admin);
  expect(stream.response.status).toBe(200);
  expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
  expect(stream.response.headers.get("cache-control")).toBe("no-store");
  await until("the first messages", () => stream.messages.length === 2);
  expect(stream.messages.map(({ event }) => event)).toEqual(["subscription", "health"]);

  const made = await attempt(id);
  await poll();
  await until("the attempt", () => stream.messages.length === 3);
  expect(stream.messages[2]).toMatchObject({
    event: "attempt",
    id: made,
    data: { id: made, outcome: "delivered" },
  });
  expect(JSON.stringify(stream.messages)).not.toContain("private");

  await disable(world, id);
  for (let i = 0; i < 4; i++) await poll();
  await until("the change and the health", () => stream.messages.length === 5);
  expect(stream.messages[3]).toMatchObject({ event: "subscription", data: { is_active: false } });
  expect(stream.messages[4]?.event).toBe("health");
  expect(stream.state.beats).toBeGreaterThan(0);
});

test("ten watchers read a subscription once a second, and each is told everything", async () => {
  const { id } = await world.subscribe();
  const { clock, database, tenants } = world;
  let reads = 0;
  const onStatement = (text: string) => {
    if (/from "(delivery_attempts|webhook_subscriptions)"/.test(text)) reads += 1;
  };
  const db = connect(database.url, { max: 4, name: "test", onStatement });
  const found = await subscriptionById(db, tenants.partners[0].id, id);
  if (found === undefined) throw new Error("There is no subscription.");
  const watched = new WatchedSubscriptions({ db, clock });
  const end = new AbortController();
  const told = Array.from({ length: 10 }, (): (string | undefined)[] => []);
  const watchers = told.map((list) => {
    const sink = {
      send: (event: string, _: unknown, attemptId?: string) => void list.push(attemptId ?? event),
      beat: () => {},
    };
    const mayRead = async () => true;
    return watchSubscription({ clock, watched }, found, { sink, mayRead }, end.signal);
  });
  await until("all asleep", () => clock.sleepers >= 10);
  const made = await attempt(id);
  reads = 0;
  clock.advance(1_000);
  await until("the attempt", () => told.every((list) => list.includes(made)));
  expect(reads).toBe(2);
  end.abort();
  await Promise.all(watchers);
  expect(new Set(told.map(String))).toEqual(new Set([`subscription,health,${made}`]));
  await db.close();
});

test("a client that leaves is no failure, whatever is still told to it", async () => {
  const warned: string[] = [];
  const log = { ...world.api.deps.log, warn: (event: string) => void warned.push(event) };
  const streams = new EventStreams({ log });
  const left = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  const { body } = streams.open(1, async (sink) => {
    await left.promise;
    sink.send("late", {});
    told.resolve();
    throw new Error("A statement that was under way failed.");
  });
  await body?.cancel();
  left.resolve();
  await told.promise;
  await Bun.sleep(0);
  expect(warned).toEqual([]);
});

test("ends when the token is revoked", async () => {
  const token = await world.api.login(world.tenants.partners[0].admin.email);
  const { id } = await world.subscribe();
  const stream = await follow(id, token);
  await until("the first messages", () => stream.messages.length === 2);
  await world.api.call("GET", "/logout", { token });
  await poll();
  await until("the end", () => stream.state.ended);
});

test("ends when the subscription is deleted", async () => {
  const { id } = await world.subscribe();
  const stream = await follow(id, world.tokens.owner);
  await until("the first messages", () => stream.messages.length === 2);
  await world.ask("DELETE", `/${id}`);
  await poll();
  await until("the end", () => stream.state.ended);
});

test("are five per user, and a closed one makes room", async () => {
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

test("are bounded per process, and end when the process stops", async () => {
  const stopping = new AbortController();
  const log = world.api.deps.log;
  const limits = { perProcess: 2, perUser: 2 };
  const streams = new EventStreams({ log, stopping: stopping.signal }, limits);
  const begin = (user: number) =>
    streams.open(
      user,
      (_, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
    );
  const codeOf = (user: number) => {
    try {
      begin(user);
      return undefined;
    } catch (error) {
      return error instanceof Problem ? error.code : error;
    }
  };
  const first = begin(1).body as ReadableStream<Uint8Array>;
  begin(1);
  expect([codeOf(1), codeOf(2)]).toEqual(["rate_limited", "overloaded"]);
  stopping.abort();
  const { done } = await first.getReader().read();
  expect(done).toBe(true);
});
