import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { connect } from "../../db/client.ts";
import { EventStreams, messageOf as bytesOf } from "../../src/http/event-stream.ts";
import { BASE_PATH } from "../../src/http/base-path.ts";
import { Problem } from "../../src/lib/problem.ts";
import { WatchedSubscriptions, type Watcher } from "../../src/webhooks/actions/watch.ts";
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

const LOOK_MS = 1_300;

/** Lets the streams look again. */
async function poll() {
  await until("the streams sleep", () => world.clock.sleepers > 0);
  world.clock.advance(LOOK_MS);
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
  for (let i = 0; i < 3; i++) await poll();
  await until("the change and the health", () => stream.messages.length === 5);
  expect(stream.messages[3]).toMatchObject({ event: "subscription", data: { is_active: false } });
  expect(stream.messages[4]?.event).toBe("health");
  expect(stream.state.beats).toBeGreaterThan(0);
});

/** Watchers of some subscriptions in a process of their own, and what it asks of the database. */
async function watchInProcess(ids: readonly string[], perSubscription: number) {
  const { clock, database, tenants } = world;
  const queries = { count: 0 };
  const onStatement = () => void (queries.count += 1);
  const db = connect(database.url, { max: 4, name: "test", onStatement });
  const watched = new WatchedSubscriptions({ db, clock });
  const end = new AbortController();
  const token = await world.api.login(tenants.partners[0].admin.email);
  const jti = String(
    JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).jti,
  );
  const checks = { made: 0, refuse: false };
  const told: string[][] = [];
  const watchers: Promise<void>[] = [];
  for (const id of ids) {
    const found = await subscriptionById(database.db, tenants.partners[0].id, id);
    if (found === undefined) throw new Error("There is no subscription.");
    for (let n = 0; n < perSubscription; n++) {
      const list: string[] = [];
      told.push(list);
      const sink = {
        send: (message: Uint8Array) =>
          void list.push(
            /^(?:id: (.*)\n)?event: (.*)\n/
              .exec(String(Buffer.from(message)))
              ?.slice(1)
              .join(" ") ?? "",
          ),
        beat: () => {},
      };
      const mayRead: Watcher["mayRead"] = async () => {
        checks.made += 1;
        return !checks.refuse;
      };
      watchers.push(watched.follow(found, { jti, sink, mayRead }, end.signal));
    }
  }
  await until("all are greeted", () => told.every(({ length }) => length === 2));
  const look = async () => {
    await until("the streams sleep", () => clock.sleepers > 0);
    const before = queries.count;
    clock.advance(LOOK_MS);
    await until("the look", () => queries.count > before && clock.sleepers > 0);
  };
  const stop = async () => {
    end.abort();
    await Promise.all(watchers);
    await db.close();
  };
  return { queries, checks, told, token, watchers, look, stop };
}

test("a look is one query, however many watch how many subscriptions, and each is told everything", async () => {
  const [one, other] = [
    await world.subscribe(),
    await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 }),
  ];
  const process = await watchInProcess([one.id, other.id], 10);
  await process.look();
  expect(process.checks.made).toBe(20);
  const made = await attempt(one.id);
  process.queries.count = 0;
  await process.look();
  await until(
    "the attempt",
    () => process.told.filter((list) => list.includes(`${made} attempt`)).length === 10,
  );
  expect(process.queries.count).toBe(1);
  expect(process.checks.made).toBe(20);
  // Every fourth look reads the health of each, with how far attempts are counted from the look.
  await process.look();
  await process.look();
  await until("the health", () =>
    process.told.every((list) => list.filter((event) => event === " health").length === 2),
  );
  expect(process.queries.count).toBe(1 + 1 + 1 + 2);
  await process.stop();
  expect(new Set(process.told.map(String))).toEqual(
    new Set([` subscription, health,${made} attempt, health`, " subscription, health, health"]),
  );
});

test("a bearer check is made when something changes that it depends on, and twice an hour", async () => {
  const { id } = await world.subscribe();
  const { sql } = world.database.db;
  const { admin } = world.tenants.partners[0];
  const process = await watchInProcess([id], 2);
  const made = async () => {
    const before = process.checks.made;
    await process.look();
    return process.checks.made - before;
  };
  expect([await made(), await made()]).toEqual([2, 0]);
  await sql`update tokens set last_used_at = now() where user_id = ${admin.id}`;
  expect(await made()).toBe(0);
  await sql`update users set role = 'partner_owner' where id = ${admin.id}`;
  expect([await made(), await made()]).toEqual([2, 0]);
  await sql`update users set role = 'partner_admin' where id = ${admin.id}`;
  expect(await made()).toBe(2);
  world.clock.advance(1_800_000);
  expect(await made()).toBe(2);
  await world.api.call("GET", "/logout", { token: process.token });
  expect(await made()).toBe(2);
  process.checks.refuse = true;
  await poll();
  await Promise.all(process.watchers);
  await process.stop();
});

test("a client that leaves is no failure, whatever is still told to it", async () => {
  const warned: string[] = [];
  const log = { ...world.api.deps.log, warn: (event: string) => void warned.push(event) };
  const streams = new EventStreams({ log });
  const left = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  const { body } = streams.open(1, async (sink) => {
    await left.promise;
    sink.send(bytesOf("late", {}));
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
