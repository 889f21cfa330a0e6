// PostgreSQL's answer is cut at each of its messages, on every path by which history comes in (contract 2.5, 9.1, 9.7).
import { beforeAll, describe, expect, test } from "bun:test";

import { connect } from "../../../db/client.ts";
import { processInbox } from "../../../src/intake/inbox.ts";
import { createWriterPool } from "../../../src/outbox/writer-pool.ts";
import { type Answer, startApi } from "../../support/api.ts";
import { silentLog } from "../../support/dispatch.ts";
import { created, report, reviewIdOf, send } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { addService, startWebhooks } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);
const proxy = fixture(() => proxyBefore(world.database.url));
const writers = fixture(() =>
  connect(proxy.in(world.database.url), { max: 1, name: "writers", isPipelined: true }),
);
const writerPool = fixture(() =>
  createWriterPool(writers, world.api.deps.clock, { connections: 1, share: 1, waitMs: 60_000 }),
);
const api = fixture(() => startApi({ ...world.api.deps, clock: world.clock, writerPool }));

let service = { id: 0, token: "" };
beforeAll(async () => {
  await report(api, world.provider, [created(world.siteId, "known")]);
  service = await addService(world);
});

describe("on each path", () => {
  test.each([...paths])("$name is taken once wherever the answer is cut", async (path) => {
    await path.submit(`${path.name} warm`);
    let cuts = 0;
    for (; await isTakenOnce(cuts); cuts++);
    expect(cuts).toBeGreaterThanOrEqual(LEAST_MESSAGES);

    async function isTakenOnce(messages: number): Promise<boolean> {
      const id = `${path.name} ${messages}`;
      await cutAt(messages);
      const before = await recorded();
      const { status, body } = await path.submit(id);
      const isCut = proxy.messagesLeft === Infinity;
      proxy.messagesLeft = Infinity;
      const rows = (await recorded()) - before;
      if (status === 200) expect([messages, body, rows]).toEqual([messages, path.first, 1]);
      else expect([messages, status, body["code"]]).toEqual([messages, 503, "unavailable"]);
      const again = await path.submit(id);
      const expected = rows === 1 ? path.again : path.first;
      expect([messages, again.status, again.body]).toEqual([messages, 200, expected]);
      expect([messages, (await recorded()) - before]).toEqual([messages, 1]);
      return isCut;
    }
  });
});

test("a repeated report is counted as a duplicate wherever the answer is cut", async () => {
  const submit = (id: string) =>
    send(api, world.provider, { events: [{ ...created(world.siteId, id), id }] });
  await submit("repeated");
  let isCut = true;
  for (let messages = 0; isCut; messages++) {
    // A batch is written without a look-up again some batches after a conflict.
    for (let n = 0; n < 20; n++) await submit(`before ${messages} ${n}`);
    await cutAt(messages);
    const { status, body } = await submit("repeated");
    isCut = proxy.messagesLeft === Infinity;
    proxy.messagesLeft = Infinity;
    if (status === 200) expect([messages, body]).toEqual([messages, known]);
    else expect([messages, status, body["code"]]).toEqual([messages, 503, "unavailable"]);
  }
});

test("the action of a person is taken once or not, as the answer says, wherever the answer is cut", async () => {
  const reviewId = await reviewIdOf(world.database.db, "known");
  const codes = new Set<unknown>();
  let isCut = true;
  for (let messages = 0; isCut; messages++) {
    await cutAt(messages);
    const before = await recorded();
    const path = `/account/reviews/${reviewId}/notes`;
    const options = { token: world.tokens.account, body: { body: `Note ${messages}` } };
    const { status, body } = await api.call("POST", path, options);
    isCut = proxy.messagesLeft === Infinity;
    proxy.messagesLeft = Infinity;
    const rows = (await recorded()) - before;
    codes.add(body["code"]);
    if (status === 200) expect([messages, rows]).toEqual([messages, 1]);
    else if (body["code"] === "outcome_unknown") expect([0, 1]).toContain(rows);
    else expect([messages, status, rows]).toEqual([messages, 503, 0]);
  }
  expect(codes).toContain("outcome_unknown");
});

test("an action of the inbox is taken once wherever the answer is cut", async () => {
  const { db, clock, box, config, schedule } = world.api.deps;
  const deps = { db, clock, box, config, schedule, writerPool, log: silentLog, countInbox() {} };
  let cuts = 0;
  for (let isCut = true; isCut; cuts++) {
    const before = await recorded();
    await db.sql`
      insert into inbox (service_id, action)
      values (${service.id}, ${JSON.stringify(await noteOf(`inbox ${cuts}`))}::text::jsonb)`;
    await cutAt(cuts);
    await processInbox(deps);
    isCut = proxy.messagesLeft === Infinity;
    proxy.messagesLeft = Infinity;
    // The entry stays locked until PostgreSQL has noticed that the connection is closed.
    await until("the action is taken", async () => {
      await processInbox(deps);
      return (await recorded()) > before;
    });
    expect([cuts, (await recorded()) - before]).toEqual([cuts, 1]);
    expect([cuts, (await db.sql`select from inbox`).length]).toEqual([cuts, 0]);
  }
  expect(cuts).toBeGreaterThanOrEqual(LEAST_MESSAGES);
});

/** A statement is answered with at least so many messages: bound, completed, ready. */
const LEAST_MESSAGES = 3;

/** Cuts the answer on the connection of the writers, which is opened first, at this message. */
async function cutAt(messages: number): Promise<void> {
  await writers.sql`select`;
  proxy.messagesLeft = messages;
}

const recorded = async () => (await world.database.db.sql`select from review_history`).length;

async function noteOf(id: string) {
  return {
    id,
    event: "note_added",
    actor: { type: "system" },
    occurred_at: "2026-06-01T12:00:00.000Z",
    review_id: await reviewIdOf(world.database.db, "known"),
    metadata: { body: id },
  };
}

/** A path: submits a change with this id, and says what it answers if the change is taken now, and again. */
interface Path {
  readonly name: string;
  readonly submit: (id: string) => Promise<Answer>;
  readonly again: Readonly<Record<string, unknown>>;
  readonly first: Readonly<Record<string, unknown>>;
}

const taken = { accepted: 1, duplicates: 0 };
const known = { accepted: 0, duplicates: 1 };
const paths: readonly Path[] = [
  {
    name: "the report of a new review",
    submit: (id) => send(api, world.provider, { events: [{ ...created(world.siteId, id), id }] }),
    first: taken,
    again: known,
  },
  {
    name: "the report of a changed review",
    submit: (id) =>
      send(api, world.provider, {
        events: [{ ...created(world.siteId, "known", { content: id }), id }],
      }),
    first: taken,
    again: known,
  },
  {
    name: "the action of a service",
    submit: async (id) =>
      api.call("POST", "/platform/actions", {
        token: service.token,
        body: { actions: [await noteOf(id)] },
      }),
    first: { ...taken, unchanged: 0 },
    again: { ...known, unchanged: 0 },
  },
];
