// Actions that services insert into the table `inbox` in transactions of their own (contract 9.8).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TSchema, TypeGuard } from "@sinclair/typebox";
import postgres from "postgres";

import { connect } from "../../../db/client.ts";
import { type Limits, LIMITS } from "../../../db/limits.ts";
import { MAX_TEXT_BYTES } from "../../../src/http/body.ts";
import { METADATA } from "../../../src/reviews/events.ts";
import { nextOfInbox } from "../../../src/intake/queries/inbox.ts";
import { MAX_ACTION_BYTES, sizeErrors } from "../../../src/intake/sizes.ts";
import { createWriterPool } from "../../../src/outbox/writer-pool.ts";
import { processInbox } from "../../../src/intake/inbox.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { silentLog } from "../../support/dispatch.ts";
import { connectStore, created, queuedFor, report, reviewIdOf } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { isThorough } from "../../support/thorough.ts";
import { addService, startWebhooks } from "../../support/webhooks.ts";

const KEY = crypto.getRandomValues(new Uint8Array(32));
const world = fixture(() => startWebhooks({ box: createSecretBox({ current: KEY }) }));

describe("the inbox", () => {
  test("takes every committed action over once, after those committed before its insert, although the API is killed twice", async () => {
    const { id } = await world.subscribe();
    const { sql } = world.database.db;
    await sql`create table written (action text primary key, tx xid8 not null, began timestamptz not null)`;
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
    const committed = new Map(
      (
        await sql<{ action: string; began: number; ended: number }[]>`
          select action, extract(epoch from began)::float8 as began,
                 extract(epoch from pg_xact_commit_timestamp(tx::xid))::float8 as ended from written`
      ).map((row) => [row.action, row]),
    );
    const queued = await queuedFor(world.database.db, id);
    const recorded = await sql<{ action: string }[]>`
      select metadata ->> 'body' as action from review_history
       where event = 'note_added' and partner_id = ${world.tenants.partners[0].id} order by sequence`;
    expect(recorded.map((row) => row.action).toSorted()).toEqual([...committed.keys()].toSorted());
    const order = recorded.flatMap(({ action: name }) => committed.get(name) ?? []);
    // A later one that was committed before an earlier one was inserted, or precedes it in its transaction.
    const reversed = order.flatMap((one, i) =>
      order.slice(i).filter(({ action: name, ended }) => {
        const [own, other] = [one.action.split("-"), name.split("-")];
        const isSame = own[0] === other[0] && own[1] === other[1];
        return ended < one.began || (isSame && Number(other[2]) < Number(own[2]));
      }),
    );
    expect(reversed).toEqual([]);
    expect(queued).toHaveLength(committed.size);
    expect((await status())["rejected"]).toBe(0);
  }, 120_000);

  test("locks nothing for an insert: transactions for two partners in either order wait for nobody, nor does another", async () => {
    const site = await siteOf(world.tenants.partners[1].id);
    const before = await notes();
    const [both, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let entered = 0;
    const written = [0, 1].map((n) =>
      world.database.connect().transaction(async (tx) => {
        await tx.sql`set local lock_timeout = '1s'`;
        const own = action();
        const foreign = { ...action({ metadata: undefined }), event: "response_post_connected" };
        const two = [own, { ...foreign, review_id: undefined, store_review_site_id: site }];
        for (const one of n === 0 ? two : two.toReversed()) {
          await tx.sql`insert into inbox (service_id, action)
                       values (${service}, ${JSON.stringify(one)}::text::jsonb)`;
          if (++entered === 2) both.resolve();
          await both.promise;
        }
        await release.promise;
      }),
    );
    await Promise.race([both.promise, ...written]);
    await insert(action());
    await take();
    expect(await notes()).toBe(before + 1);
    release.resolve();
    await Promise.all(written);
    await take();
    expect(await notes()).toBe(before + 3);
  });

  test("sets an action aside that cannot be taken, with its reasons, and goes on", async () => {
    await insert(action({ metadata: {} }));
    await insert({ ...action(), event: "review_moved" });
    await insert(action({ review_id: 999_999 }));
    await insert(7);
    await insert(action(), 999_999);
    const [, other] = world.tenants.partners;
    const foreign = await addService(world, ["actions:write"], [other.id]);
    await insert(action(), foreign.id);
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
      ["service_id"],
    ]);
    expect(await status()).toMatchObject({ waiting: 0, rejected: 6, oldest_waiting_at: null });

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
    const site = await siteOf(other.id);
    const { id } = await world.subscribe();
    const before = await notes();
    const lock = world.database.connect();
    const [taken, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locked = lock.transaction(async (tx) => {
      await tx.sql`select from outbox_sequences where subscription_id = ${id} for update`;
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
    await take();
    expect(await notes()).toBe(before + 1);
  });
});

describe("a size", () => {
  /** Each text field of the metadata of each event, with an action that has the text there. */
  const fields = Object.entries(METADATA).flatMap(([event, { properties }]) =>
    Object.entries(properties as Record<string, TSchema>).flatMap(([field, schema]) => {
      const wrap = TypeGuard.IsArray(schema) ? (text: string) => [text] : (text: string) => text;
      const isText = TypeGuard.IsString(schema) || TypeGuard.IsArray(schema);
      const make = (text: string) => action({ event, metadata: { [field]: wrap(text) } });
      return isText ? [{ name: `${event} ${field}`, make }] : [];
    }),
  );
  const NESTED = "a nested text";
  const other = [
    { name: NESTED, make: (text: string) => action({ metadata: { a: [{ b: text }] } }) },
    { name: "a key", make: (text: string) => action({ metadata: { [text]: 1 } }) },
    { name: "a text as the action", make: (text: string) => text },
  ];

  test.each([...fields, ...other])(
    "of 256 KiB passes and one byte more is refused for $name, at the insert as by the service",
    async ({ name, make }) => {
      // The escapes of characters are the same in every field.
      const characters = name === NESTED ? ["x", "é", "€", "😀", "\n", '"', "\u0001"] : ["é"];
      for (const character of characters) {
        const bytes = Buffer.byteLength(character);
        const count = Math.floor(MAX_TEXT_BYTES / bytes);
        const full = character.repeat(count) + "x".repeat(MAX_TEXT_BYTES - count * bytes);
        // Where one text is all of an action, its escapes must not exceed the limit of the action.
        if (JSON.stringify(full).length > MAX_ACTION_BYTES / 2) continue;
        expect(await verdictsOf(make(full))).toEqual([]);
        expect(await verdictsOf(make(`${full}x`))).toEqual(["inbox_text_over_256_kib"]);
      }
    },
  );

  test("of 1 MiB passes and one byte more is refused for the action as PostgreSQL prints it", async () => {
    for (const character of ["x", "é", "😀", "\n"]) {
      const made = (words: string[]) =>
        action({ event: "profanity_detected", metadata: { words } });
      const words = Array.from({ length: 11 }, () => character.repeat(20_000));
      const [row] = await world.database.db.sql<{ bytes: number }[]>`
        select octet_length(${JSON.stringify(made(words))}::text::jsonb::text) as bytes`;
      count--;
      const rest = MAX_ACTION_BYTES - (row?.bytes ?? 0) - 4 * 4;
      const fill = [0, 1, 2, 3].map((nth) => "x".repeat(Math.floor((rest + nth) / 4)));
      expect(await verdictsOf(made([...words, ...fill]))).toEqual([]);
      count--;
      expect(await verdictsOf(made([...words, ...fill.slice(1), `${fill[0]}x`]))).toEqual([
        "inbox_action_over_1_mib",
      ]);
    }
  });

  test("is checked in one pass over the values of an action of 1 MiB", async () => {
    const many = action({ metadata: { values: Array.from({ length: 340_000 }, () => 0) } });
    await world.database.db.transaction(async ({ sql }) => {
      // A check that took a pass for each value would take hours, and one pass takes less than a second.
      await sql`set local statement_timeout = '60s'`;
      const text = JSON.stringify(many);
      await sql`insert into inbox (service_id, action) values (${service}, ${text}::text::jsonb)`;
    });
    await world.database.db.sql`delete from inbox`;
  });

  test("is the same at POST /platform/actions", async () => {
    const post = async (...actions: object[]) => {
      const { status: answered } = await world.api.call("POST", "/platform/actions", {
        token,
        body: { actions },
      });
      return answered;
    };
    const full = "é".repeat(MAX_TEXT_BYTES / 2);
    expect(await post(action({ metadata: { body: full } }))).toBe(200);
    expect(await post(action({ metadata: { body: `${full}x` } }))).toBe(400);
    // PostgreSQL prints a space after each of the commas.
    const words = Array.from({ length: 8 }, () => "x".repeat(130_600));
    const spaced = [...words, ...Array.from({ length: 1_000 }, () => "")];
    const profane = (some: string[]) =>
      post(action({ event: "profanity_detected", metadata: { words: some } }));
    expect([await profane(spaced), await profane(words)]).toEqual([422, 200]);
  });
});

describe("an inbox with rows from before the limits", () => {
  const [ofOneMib, ofFifteen] = isThorough ? [400, 40] : [30, 3];
  const waits: number[] = [];

  test("is taken in order and in reads of bounded bytes: what is over a limit is set aside, and nothing waits for it", async () => {
    const [own, other] = world.tenants.partners;
    const site = await siteOf(other.id);
    const words = (length: number) => Array.from({ length }, () => "x".repeat(250_000));
    const profane = (length: number) =>
      action({ event: "profanity_detected", metadata: { words: words(length) } });
    const before = await countOf("profanity_detected");
    const notesBefore = await notes();
    await withoutLimits(async () => {
      for (let i = 0; i < ofOneMib; i++) await insert(profane(4));
      for (let i = 0; i < ofFifteen; i++) await insert(profane(60));
      await insert(action({ metadata: { body: "x".repeat(MAX_TEXT_BYTES + 1) } }));
    });
    await insert(action());
    await insert({
      ...action({ metadata: undefined }),
      event: "response_post_connected",
      review_id: undefined,
      store_review_site_id: site,
    });
    const read = await world.database.db.transaction((tx) => nextOfInbox(tx, own.id, 500));
    const bytes = read.map((one) => Buffer.byteLength(JSON.stringify(one.action)));
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(5 * MAX_ACTION_BYTES);
    expect(bytes.length).toBeGreaterThan(1);

    await take();
    expect(await waitingOf(other.id)).toBe(0);
    const first = await countOf("profanity_detected");
    expect([first > before, first < before + ofOneMib]).toEqual([true, true]);
    await untilTaken();
    expect(await countOf("profanity_detected")).toBe(before + ofOneMib);
    expect(await notes()).toBe(notesBefore + 1);
    const rows = await listed("rejected");
    expect(rows.map(({ errors }) => errors)).toEqual([
      ...Array.from({ length: ofFifteen }, () => ({ action: "has more than 1048576 bytes" })),
      { "metadata.body": "has a text of more than 262144 bytes" },
    ]);
    expect(rows.map(({ action: shown }) => shown === null)).toEqual([
      ...Array.from({ length: ofFifteen }, () => true),
      false,
    ]);
    waits.push(...rows.map(({ position }) => position));
  }, 600_000);

  test("keeps an action over a limit aside when an operator retries it, and drops it", async () => {
    for (const position of waits) {
      const { status: answered, body } = await admin("POST", `/${position}/retry`);
      expect([answered, body["errors"]]).toEqual([
        422,
        { action: ["is larger than the inbox takes"] },
      ]);
      expect((await admin("DELETE", `/${position}`)).status).toBe(204);
    }
    expect((await world.audit("INBOX_DROPPED")).at(-1)).toMatchObject({
      details: { position: waits.at(-1), state: "rejected" },
    });
  });

  test("is listed in pages of bounded bytes, and an operator removes an action that waits", async () => {
    const words = Array.from({ length: 4 }, () => "x".repeat(250_000));
    for (let i = 0; i < 12; i++)
      await insert(action({ event: "profanity_detected", metadata: { words } }));
    const seen = (await listed("waiting")).map(({ position }) => position);
    expect(seen).toHaveLength(12);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    for (const position of seen) expect((await admin("DELETE", `/${position}`)).status).toBe(204);
    expect((await admin("DELETE", `/${seen[0]}`)).status).toBe(404);
    expect((await world.audit("INBOX_DROPPED")).at(-1)).toMatchObject({
      details: { position: seen.at(-1), state: "waiting" },
    });
    expect(await status()).toMatchObject({ waiting: 0, rejected: 0 });
  });

  test("sets the one action aside that takes the database too long, and takes the others in order", async () => {
    const { sql } = world.database.db;
    await sql.unsafe(`
      create function sleep_one() returns trigger language plpgsql as $$ begin
        if new.metadata ->> 'body' = 'slow' then perform pg_sleep(60); end if;
        return new;
      end $$;
      create trigger sleep_one before insert on review_history for each row execute function sleep_one()`);
    const before = await notes();
    const made = Array.from({ length: 20 }, () => action());
    for (const [nth, one] of made.entries()) {
      if (nth === 13) await insert(action({ metadata: { body: "slow" } }));
      await insert(one);
    }
    const limits = { ...LIMITS.writerPool, statementMs: 500 };
    const tries = new Map<number, number>();
    await untilTaken(() => take(limits, tries));
    await sql.unsafe("drop function sleep_one() cascade");
    expect(await notes()).toBe(before + made.length);
    const recorded = await sql<{ body: string }[]>`
      select metadata ->> 'body' as body from review_history where event = 'note_added' order by id desc limit 20`;
    expect(recorded.map((row) => row.body).toReversed()).toEqual(made.map((one) => one.id));
    expect((await listed("rejected")).map(({ errors }) => errors)).toEqual([
      { action: "takes the database too long" },
    ]);
  }, 60_000);
});

let service = 0;
let token = "";
let reviewId = 0;
let count = 0;

beforeAll(async () => {
  ({ id: service, token } = await addService(world));
  await report(world.api, world.provider, [created(world.siteId, "in-the-inbox")]);
  reviewId = await reviewIdOf(world.database.db, "in-the-inbox");
  const [, other] = world.tenants.partners;
  await connectStore(world.database.db, other.accounts[0], { provider: world.provider });
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
          await tx`insert into written (action, tx, began) values (${one.id}, pg_current_xact_id(), clock_timestamp())`;
          await tx`insert into inbox (service_id, action) values (${service}, ${JSON.stringify(one)}::text::jsonb)`;
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

/** Returns the names of the checks that refuse an action, which is then not inserted. The service refuses the same ones. */
async function verdictsOf(value: unknown): Promise<string[]> {
  const refused = await insert(value).then(
    () => [],
    (error: unknown) => [String(fieldsOf(error)["constraint_name"])],
  );
  await world.database.db.sql`delete from inbox`;
  expect(Object.keys(sizeErrors("action", value))).toHaveLength(refused.length);
  return refused;
}

/** Lets rows in as versions before the limits did. */
async function withoutLimits(work: () => Promise<void>): Promise<void> {
  const { sql } = world.database.db;
  const checks = await sql<{ name: string; text: string }[]>`
    select conname as name, pg_get_constraintdef(oid) as text from pg_constraint
     where conrelid = 'inbox'::regclass and conname like 'inbox_%_over_%'`;
  expect(checks.map(({ text }) => text.endsWith("NOT VALID"))).toEqual([true, true]);
  for (const { name } of checks) await sql`alter table inbox drop constraint ${sql(name)}`;
  await work();
  for (const { name, text } of checks)
    await sql.unsafe(`alter table inbox add constraint ${name} ${text}`);
}

const untilTaken = (round = () => take()) =>
  until(
    "an empty inbox",
    async () => {
      await round();
      return (await status())["waiting"] === 0;
    },
    300_000,
  );

async function countOf(event: string): Promise<number> {
  const rows = await world.database.db.sql`select from review_history where event = ${event}`;
  return rows.length;
}

/** Takes the inbox over once, with the time limits of the API. */
async function take(
  limits: Limits = LIMITS.writerPool,
  tries?: Map<number, number>,
): Promise<boolean> {
  const { db, clock, box, config, schedule } = world.api.deps;
  const writerDb = connect(world.database.url, {
    max: 2,
    name: "writer",
    limits,
  });
  const writerPool = createWriterPool(writerDb, clock, { connections: 2, share: 2, waitMs: 6_000 });
  try {
    return await processInbox(
      { db, clock, box, config, writerPool, schedule, log: silentLog, countInbox: () => {} },
      tries,
    );
  } finally {
    await writerDb.close();
  }
}

const admin = (method: string, path: string) =>
  world.api.call(method, `/admin/inbox${path}`, { token: world.tokens.root });

/** Lists the inbox page by page; each page is of bounded bytes. */
async function listed(state: "waiting" | "rejected") {
  const found: { position: number; action: unknown; errors: object }[] = [];
  for (let cursor = ""; ;) {
    const { body } = await admin("GET", `?state=${state}&limit=10${cursor}`);
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(6 * MAX_ACTION_BYTES);
    found.push(...(body["data"] as typeof found));
    const { next_cursor: next } = body as { next_cursor: string | null };
    if (next === null) return found;
    cursor = `&cursor=${next}`;
  }
}

const status = async () => (await admin("GET", "/status")).body;

const notes = () => countOf("note_added");

async function siteOf(partnerId: number): Promise<number> {
  const [row] = await world.database.db.sql<{ id: number }[]>`
    select id from store_review_sites where partner_id = ${partnerId}`;
  return row?.id ?? 0;
}

async function waitingOf(partnerId: number): Promise<number> {
  const rows = await world.database.db.sql`
    select from inbox where state = 'waiting' and partner_id = ${partnerId}`;
  return rows.length;
}
