// Measures how much disk a delivered event takes: rows that the dispatcher's own commit writes, and their indexes.
import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import { indexEndedDays, ensurePartitions, partitionsAhead } from "../../db/partitions.ts";
import { commitAttempts } from "../../dispatcher/store/attempt-queries.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import { createUlids } from "../../dispatcher/store/ulids.ts";
import { attemptRecord } from "./outbox.ts";

const DISPATCHER = "BYTES000000000000000000001";
const GROUP = 200;
const DAY_MS = 86_400_000;
/** The response headers of a receiver, which we cannot shorten. */
const ANSWER = {
  date: "Fri, 20 Nov 2026 23:12:17 GMT",
  "content-type": "application/json; charset=utf-8",
  "content-length": "15",
  connection: "keep-alive",
};
const EXCERPT = '{"status":"ok"}';

interface AttemptBytes {
  /** Bytes per attempt, without the headers and the excerpt of the response. */
  readonly table: number;
  readonly indexes: number;
  /** Index bytes after the day has ended and maintenance has built its final indexes. */
  readonly endedIndexes: number;
}

/** Old enough that maintenance considers the day as ended. */
const DAYS_BACK = 3;

/**
 * Records deliveries for a past day, spread over subscriptions, through the dispatcher's own statements; there is no
 * history for them.
 */
export async function measureAttemptBytes(
  db: RawDb,
  { rows, subscriptions }: { readonly rows: number; readonly subscriptions: number },
): Promise<AttemptBytes> {
  const now = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - DAYS_BACK * DAY_MS);
  await ensurePartitions(db, now);
  await db.sql`
    insert into dispatchers (id, started_at, renewed_at) values (${DISPATCHER}, now(), now())
    on conflict do nothing`;
  const ids = Array.from({ length: subscriptions }, () => ulid());
  await subscribe(db, ids);
  const newUlid = createUlids();
  for (let first = 0; first < rows; first += GROUP) {
    const records = Array.from({ length: GROUP }, (_, n) =>
      recordOf(newUlid, ids[(first + n) % subscriptions] ?? "", {
        n: first + n,
        startedAt: new Date(now.getTime() + first + n),
      }),
    );
    await queue(db, records);
    const group = { records, now, monotonicMs: 0 };
    const { fenced } = await commitAttempts(db, DISPATCHER, group);
    if (fenced) throw new Error("The lease of the measurement is gone.");
  }
  const [day] = partitionsAhead(now, 0);
  return sizesOf(db, day?.name ?? "");
}

function recordOf(
  newUlid: (ms: number) => string,
  subscriptionId: string,
  { n, startedAt }: { readonly n: number; readonly startedAt: Date },
): AttemptRecord {
  const newId = () => newUlid(startedAt.getTime());
  return attemptRecord({
    id: newId(),
    eventId: newId(),
    shard: 1,
    subscriptionId,
    sequence: n + 1,
    isLogged: false,
    startedAt,
    recordedAt: startedAt,
    statusCode: 200,
    errorCode: null,
    host: "hooks.partner.example",
    signature: randomHex(32),
    bodyDigest: randomHex(16),
    responseHeaders: ANSWER,
    responseExcerpt: EXCERPT,
    decision: { kind: "delivered" },
  });
}

function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
}

/**
 * Creates deleted subscriptions, because one partner may have any number of them; the commit does not check their
 * state.
 */
async function subscribe(db: RawDb, ids: readonly string[]): Promise<void> {
  await db.sql`
    with partner as (
      insert into companies (type, name, primary_color, created_at) values ('partner', 'Partner', '#000000', now())
      returning id
    )
    insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
      suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at, deleted_at)
    select t.id, (select id from partner), 1, '', '', 'immediate', 'full', false, 'subscription', 'deleted', '', '', now(),
           now(), now()
      from unnest(${ids}::text[]) as t(id)`;
  await db.sql`insert into outbox_offsets (subscription_id) select unnest(${ids}::text[])`;
}

/** Queues test events, which need no history. */
async function queue(db: RawDb, records: readonly AttemptRecord[]): Promise<void> {
  const entries = records.map(({ shard, subscriptionId, sequence, eventId, event }) => ({
    shard,
    subscription_id: subscriptionId,
    sequence,
    event_id: eventId,
    event,
    is_test: true,
    payload_mode: "full",
    recorded_at: new Date(),
  }));
  await db.sql`insert into outbox ${db.sql(entries)}`;
}

async function sizesOf(db: RawDb, day: string): Promise<AttemptBytes> {
  const sql = db.sql.unsafe.bind(db.sql);
  const [found] = await sql<{ rows: number; answer: number }[]>(`
    select count(*) as rows,
           avg(pg_column_size(response_headers) + pg_column_size(response_excerpt))::float8 as answer
      from ${day}`);
  const { rows = 1, answer = 0 } = found ?? {};
  const relations = async () => {
    const [size] = await sql<{ table: number; indexes: number }[]>(
      `select pg_table_size('${day}') as table, pg_indexes_size('${day}') as indexes`,
    );
    return { table: (size?.table ?? 0) / rows, indexes: (size?.indexes ?? 0) / rows };
  };
  const open = await relations();
  await indexEndedDays(db);
  const { indexes: endedIndexes } = await relations();
  return { table: open.table - answer, indexes: open.indexes, endedIndexes };
}
