// Actions that services insert into the table `inbox` in transactions of their own (contract 9.8).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import postgres from "postgres";

import { connect } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { createWriterPool } from "../../../src/outbox/writer-pool.ts";
import { takeInbox } from "../../../src/services/take-inbox.ts";
import { createSecretBox } from "../../../src/lib/secret-box.ts";
import { silentLog } from "../../support/dispatch.ts";
import { connectStore, created, queuedFor, report, reviewIdOf } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const KEY = crypto.getRandomValues(new Uint8Array(32));
const world = fixture(() => startWebhooks({ box: createSecretBox({ current: KEY }) }));

describe("the inbox", () => {
  test("takes every committed action over once and in commit order, although the API is killed twice", async () => {
    const { id } = await world.subscribe();
    const { sql } = world.database.db;
    await sql`create table written (action text primary key, tx xid8 not null, nth bigserial)`;
    const env = {
      DATABASE_URL: world.database.url,
      MASTER_KEY: Buffer.from(KEY).toString("base64"),
    };
    let api = await ApiProcess.start(env);
    const written = Promise.all([1, 2, 3].map((writer) => write(writer, 60)));
    for (let kills = 0; kills < 2; kills++) {
      await Bun.sleep(700);
      api.kill();
      api = await ApiProcess.start(env);
    }
    await written;
    await until("an empty inbox", async () => (await status())["waiting"] === 0);
    api.kill();
    const committed = await sql<{ action: string }[]>`
      select action from written order by pg_xact_commit_timestamp(tx::xid), nth`;
    const queued = await queuedFor(world.database.db, id);
    const [first] = await sql<{ name: string }[]>`select action as name from written limit 1`;
    expect(first).toBeDefined();
    const recorded = await sql<{ action: string }[]>`
      select metadata ->> 'body' as action from review_history
       where event = 'note_added' and partner_id = ${world.tenants.partners[0].id} order by sequence`;
    expect(recorded.map((row) => row.action)).toEqual(committed.map((row) => row.action));
    expect(queued).toHaveLength(committed.length);
    expect((await status())["rejected"]).toBe(0);
  }, 120_000);

  test("sets an action aside that cannot be taken, with its reasons, and goes on", async () => {
    await insert(action({ metadata: {} }));
    await insert({ ...action(), event: "review_moved" });
    await insert(action({ review_id: 999_999 }));
    await insert(7);
    await insert(action(), 999_999);
    const before = await notes();
    await insert(action());
    await take();
    expect(await notes()).toBe(before + 1);
    const { body } = await admin("GET", "");
    const rows = body["data"] as { position: number; errors: Record<string, string> }[];
    expect(rows.map(({ errors }) => Object.keys(errors))).toEqual([
      ["metadata.body"],
      ["event"],
      ["review_id"],
      ["body"],
      ["service_id"],
    ]);
    expect(await status()).toMatchObject({ waiting: 0, rejected: 5, oldest_waiting_at: null });

    const [one, ...others] = rows.map(({ position }) => position);
    await world.database.db.sql`
      update inbox set action = action || '{"metadata": {"body": "mended"}}' where position = ${one ?? 0}`;
    expect((await admin("POST", `/${one}/retry`)).status).toBe(204);
    expect((await status())["waiting"]).toBe(1);
    await take();
    expect(await notes()).toBe(before + 2);
    for (const position of others) expect((await admin("DELETE", `/${position}`)).status).toBe(204);
    expect((await admin("DELETE", `/${others[0]}`)).status).toBe(404);
    expect((await admin("POST", "/x/retry")).status).toBe(404);
    expect((await status())["rejected"]).toBe(0);
    expect((await world.audit("INBOX_RETRIED")).at(-1)).toMatchObject({
      details: { position: one },
    });
  });

  test("sets aside the one action that PostgreSQL refuses, and takes the others in order", async () => {
    const { sql } = world.database.db;
    await sql.unsafe(`
      create function refuse_one() returns trigger language plpgsql as $$ begin
        if new.metadata ->> 'body' = 'refused' then raise exception 'refused by the test'; end if;
        return new;
      end $$;
      create trigger refuse_one before insert on review_history for each row execute function refuse_one()`);
    const before = await notes();
    const [first, second] = [action(), action()];
    await insert(first);
    await insert(action({ metadata: { body: "refused" } }));
    await insert(second);
    await until("an empty inbox", async () => {
      await take();
      return (await status())["waiting"] === 0;
    });
    await sql.unsafe("drop function refuse_one() cascade");
    expect(await notes()).toBe(before + 2);
    const { body } = await admin("GET", "");
    const [refused, ...others] = body["data"] as { position: number; errors: object }[];
    expect([refused?.errors, others]).toEqual([{ action: "is refused by the database" }, []]);
    expect((await admin("POST", `/${refused?.position}/retry`)).status).toBe(204);
    await take();
    expect(await notes()).toBe(before + 3);
  });

  test("takes an action with a known id not again, also beside POST /platform/actions", async () => {
    const one = action();
    const before = await notes();
    await insert(one);
    await insert(one);
    await Promise.all([take(), take(), take()]);
    await insert(one);
    await take();
    expect(await notes()).toBe(before + 1);
    expect(await status()).toMatchObject({ waiting: 0, rejected: 0 });
  });

  test("of a partner whose sequence is locked holds up no other partner", async () => {
    const [own, other] = world.tenants.partners;
    const site = await connectStore(world.database.db, other.accounts[0], {
      provider: world.provider,
    });
    const { id } = await world.subscribe();
    const before = await notes();
    const lock = postgres(world.database.url, { max: 1 });
    const [taken, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locked = lock.begin(async (tx) => {
      await tx`select from outbox_sequences where subscription_id = ${id} for update`;
      await insert(action());
      await insert({
        ...action({ metadata: undefined }),
        event: "response_post_disconnected",
        error_code: "E-001",
        review_id: undefined,
        store_review_site_id: site,
      });
      await take();
      taken.resolve();
      await release.promise;
    });
    await Promise.race([taken.promise, locked]);
    expect(await waitingOf(other.id)).toBe(0);
    expect([await waitingOf(own.id), await notes()]).toEqual([1, before]);
    release.resolve();
    await locked;
    await lock.end();
    await take();
    expect(await notes()).toBe(before + 1);
  });
});

test("operators alone see the inbox", async () => {
  for (const path of ["", "/status"])
    expect(
      (await world.api.call("GET", `/admin/inbox${path}`, { token: world.tokens.owner })).status,
    ).toBe(403);
});

let service = 0;
let reviewId = 0;
let count = 0;

beforeAll(async () => {
  const body = { name: "Reviews", scopes: ["actions:write"] };
  const made = await world.api.call("POST", "/admin/services", { token: world.tokens.root, body });
  service = Number(made.body["id"]);
  await report(world.api, world.provider, [created(world.siteId, "in-the-inbox")]);
  reviewId = await reviewIdOf(world.database.db, "in-the-inbox");
});

afterAll(async () => {
  await world.database.db.sql`delete from inbox`;
});

function action(fields: object = {}) {
  const id = `inbox-${++count}`;
  return {
    id,
    event: "note_added",
    actor: { type: "system" },
    occurred_at: "2026-05-01T08:00:00.000+00:00",
    review_id: reviewId,
    metadata: { body: id },
    ...fields,
  };
}

async function insert(value: unknown, as = service): Promise<void> {
  await world.database.db.sql`
    insert into inbox (service_id, action) values (${as}, ${JSON.stringify(value)}::text::jsonb)`;
}

/** Inserts actions in plain SQL: transactions of one or two actions, some slow, a third of them rolled back. */
async function write(writer: number, transactions: number): Promise<void> {
  const sql = postgres(world.database.url, { max: 1 });
  for (let i = 0; i < transactions; i++) {
    const isKept = (i + writer) % 3 !== 0;
    await sql
      .begin(async (tx) => {
        for (let nth = 0; nth <= i % 2; nth++) {
          const one = action({
            id: `w${writer}-${i}-${nth}`,
            metadata: { body: `w${writer}-${i}-${nth}` },
          });
          await tx`insert into inbox (service_id, action) values (${service}, ${JSON.stringify(one)}::text::jsonb)`;
          await tx`insert into written (action, tx) values (${one.id}, pg_current_xact_id())`;
          await Bun.sleep((i * writer) % 7);
        }
        if (!isKept) throw new Error("rolled back");
      })
      .catch((error: Error) => {
        if (error.message !== "rolled back") throw error;
      });
    await Bun.sleep((i * 5 + writer) % 11);
  }
  await sql.end();
}

/** Takes the inbox over once, with the time limits of the API. */
async function take(): Promise<boolean> {
  const { db, clock, schedule } = world.api.deps;
  const writerDb = connect(world.database.url, {
    max: 2,
    name: "writer",
    limits: LIMITS.writerPool,
  });
  const writerPool = createWriterPool(writerDb, clock, { connections: 2, share: 2, waitMs: 6_000 });
  try {
    return await takeInbox({
      db,
      clock,
      writerPool,
      schedule,
      log: silentLog,
      countInbox: () => {},
    });
  } finally {
    await writerDb.close();
  }
}

const admin = (method: string, path: string) =>
  world.api.call(method, `/admin/inbox${path}`, { token: world.tokens.root });

const status = async () => (await admin("GET", "/status")).body;

async function notes(): Promise<number> {
  const rows = await world.database.db.sql`select from review_history where event = 'note_added'`;
  return rows.length;
}

async function waitingOf(partnerId: number): Promise<number> {
  const rows = await world.database.db.sql`
    select from inbox where state = 'waiting' and partner_id = ${partnerId}`;
  return rows.length;
}
