import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  queuedFor,
  type TestProvider,
} from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));

describe("a request of 500 events", () => {
  test("with one invalid item writes nothing and reports it", async () => {
    const { root } = await startProcess();
    const body = JSON.parse(fiveHundred()) as { events: Record<string, unknown>[] };
    body.events[437] = created(site, "bad", { rate: 6 });
    expect(await post(root, JSON.stringify(body))).toMatchObject({
      status: 422,
      body: { errors: { "events.437.review.rate": [expect.any(String)] } },
    });
    expect(await rows()).toEqual(NOTHING);
    // An error that only the database can find.
    body.events[437] = created(999_999, "elsewhere");
    const answer = await post(root, JSON.stringify(body));
    expect(answer?.status).toBe(422);
    expect(Object.keys(answer?.body["errors"] ?? {})).toEqual(["events.437.store_review_site_id"]);
    expect(await rows()).toEqual(NOTHING);
  });

  test("repeated after a timeout is written once", async () => {
    const { root } = await startProcess();
    const body = fiveHundred();
    const gone = new AbortController();
    let repeated: ReturnType<typeof post> | undefined;
    await inTheMiddle(async (waiting) => {
      const first = post(root, body, gone.signal);
      await waiting();
      gone.abort();
      expect(await first).toBeUndefined();
      repeated = post(root, body);
    });
    const answer = await repeated;
    expect(answer).toMatchObject({ status: 200, body: { accepted: 0, duplicates: 500 } });
    expect(await rows()).toEqual(ALL);
    expect(await post(root, body)).toEqual({
      status: 200,
      body: { accepted: 0, duplicates: 500 },
    });
    expect(await rows()).toEqual(ALL);
  });

  test("writes nothing if its process is killed, and everything when it is repeated", async () => {
    const { root, child } = await startProcess();
    const body = fiveHundred();
    const before = (await queuedFor(database.db, subscription)).length;
    await inTheMiddle(async (waiting) => {
      const lost = post(root, body);
      await waiting();
      child.kill("SIGKILL");
      expect(await lost).toBeUndefined();
    });
    await until("Postgres has noticed", noBackends);
    expect(await rows()).toEqual(NOTHING);
    const next = await startProcess();
    expect(await post(next.root, body)).toEqual({
      status: 200,
      body: { accepted: 500, duplicates: 0 },
    });
    expect(await rows()).toEqual(ALL);
    const queued = (await queuedFor(database.db, subscription)).slice(before);
    // The numbers have no gap and are in the order of the history.
    const [first] = queued;
    expect(queued.map(({ sequence }) => sequence)).toEqual(
      queued.map((_, i) => (first?.sequence ?? 0) + i),
    );
    const history = await historyOfSite(database.db, site);
    expect(queued.map(({ historyId }) => historyId)).toEqual(history.map((row) => row.id));
  });
});

const ROOT = join(import.meta.dir, "../../..");

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });

let account: TestAccount;

let provider: TestProvider;

let subscription = "";

let site = 0;

let tag = 0;

const children: ChildProcess[] = [];

beforeAll(async () => {
  [account] = (await addTenants(database.db)).partners[0].accounts;
  const url = "http://127.0.0.1:3999/";
  const options = { partnerId: account.partnerId, url };
  subscription = (await insertSubscription({ db: database.db, box }, options)).subscriptionId;
});

beforeEach(async () => {
  provider = await addProvider(database.db, box, `site-${++tag}`);
  site = await connectStore(database.db, account, { provider });
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** Starts a real API process; returns its root URL once it is ready. */
async function startProcess(): Promise<{ root: string; child: ChildProcess }> {
  const port = await freePort();
  const child = spawn(process.execPath, ["src/main.ts", "api"], {
    cwd: ROOT,
    env: {
      PATH: process.env["PATH"] ?? "",
      // Locks are waited for without a limit, so that the test controls the time.
      DATABASE_URL: `${database.url}?lock_timeout=0`,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      MASTER_KEY: KEY.toString("base64"),
      PORT: String(port),
      LOG_LEVEL: "error",
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  children.push(child);
  const root = `http://127.0.0.1:${port}`;
  const ready = () =>
    fetch(`${root}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("the API is ready", ready);
  return { root, child };
}

/** Undefined if the connection ended without an answer. */
async function post(root: string, body: string, signal?: AbortSignal) {
  const digest = createHmac("sha256", provider.secret).update(body).digest("hex");
  try {
    const response = await fetch(`${root}${BASE_PATH}/providers/${provider.slug}/events`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-Provider-Signature": `sha256=${digest}`,
      },
      body,
      ...(signal && { signal }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  } catch {
    return undefined;
  }
}

const fiveHundred = () =>
  JSON.stringify({
    events: Array.from({ length: 500 }, (_, i) => created(site, `r-${i}`, { content: `No. ${i}` })),
  });

/** Counts the rows of every table that a request writes. */
async function rows() {
  const [row] = await database.db.sql`
    select (select count(*)::int from provider_events where review_site_id = ${provider.id}) as ids,
           (select count(*)::int from reviews where store_review_site_id = ${site}) as reviews,
           (select count(*)::int from review_history where store_review_site_id = ${site}) as history,
           (select count(*)::int from queued_entries o join review_history h on h.id = o.review_history_id
             where h.store_review_site_id = ${site}) as entries`;
  return { ...row };
}

const NOTHING = { ids: 0, reviews: 0, history: 0, entries: 0 };

const ALL = { ids: 500, reviews: 500, history: 500, entries: 500 };

/** Locks the partner's sequence, which a request takes last: it has then written everything else and waits. */
async function inTheMiddle(work: (waiting: () => Promise<void>) => Promise<void>): Promise<void> {
  const { db } = database;
  await db.transaction(async (tx) => {
    await tx.sql`select 1 from outbox_sequences where subscription_id = ${subscription} for update`;
    await work(() =>
      until("the request waits", async () => {
        const blocked = await db.sql`
          select 1 from pg_stat_activity
           where application_name = 'reviewrelay-writer' and wait_event_type = 'Lock'
             and datname = current_database()`;
        return blocked.length > 0;
      }),
    );
  });
}

const noBackends = async () => {
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*)::int as n from pg_stat_activity
     where application_name like 'reviewrelay-%' and datname = current_database()`;
  return row?.n === 0;
};
