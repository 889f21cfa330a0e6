import { afterEach, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { decodeTime } from "ulid";

import { connect, type RawDb } from "../../db/client.ts";
import { startStores } from "../../scripts/demo/stores/keep.ts";
import { createSecretBox, type SecretBox } from "../../src/lib/secrets.ts";
import { judgeArrivals } from "../invariants/arrivals.ts";
import { addProvider, connectStore, created, type TestProvider } from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { insertSubscription } from "../support/outbox.ts";
import type { ApiProcess } from "../support/processes/api-process.ts";
import { addTenants, type TestPartner } from "../support/tenants.ts";

/** What a drill of operations works on: a folder of its own, and the ends of everything that it starts. */
export interface Drill {
  /** A temporary folder that every user may enter, because PostgreSQL refuses to run as root. */
  readonly folder: string;
  readonly masterKey: Buffer;
  /** Runs `end` after the test, before the ends that were registered earlier. */
  atEnd(end: () => unknown): void;
}

/** Makes a function that begins a drill in a test. Everything that the drill starts ends with the test. */
export function drills(): () => Drill {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "reviewrelay-drill-"));
    chmodSync(folder, 0o711);
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    return { folder, masterKey: randomBytes(32), atEnd: (end) => void ends.push(end) };
  };
}

/** Starts durable stores of the drill, which survive a crash as those of production do. */
export async function startDurableStores(
  { folder, atEnd }: Drill,
  { postgres }: { readonly postgres: boolean },
): Promise<{ databaseUrl: string; redisUrl: string }> {
  const stores = await startStores({
    folder: mkdtempSync(join(folder, "stores-")),
    logFile: join(folder, "stores.log"),
    ...(postgres && { postgres: { durable: true } }),
    redis: true,
  });
  atEnd(() => stores.stop());
  return { databaseUrl: stores.databaseUrl ?? "", redisUrl: stores.redisUrl ?? "" };
}

/** Returns the settings of processes that deliver to receivers on loopback. */
export function settingsOf(
  { masterKey }: Pick<Drill, "masterKey">,
  { databaseUrl, redisUrl }: { readonly databaseUrl: string; readonly redisUrl: string },
) {
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MASTER_KEY: masterKey.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    RETRY_DELAYS_MS: "300,600,900",
  };
}

/** Opens a connection that lasts until the end of the drill. */
export function openDb({ atEnd }: Drill, databaseUrl: string): RawDb {
  const db = connect(databaseUrl, { max: 2, name: "drill" });
  atEnd(() => db.close());
  return db;
}

export interface Endpoint {
  readonly receiver: Receiver;
  readonly provider: TestProvider;
  /** The connection of the partner's store whose reviews are reported. */
  readonly siteId: number;
}

/** Adds two partners, each with a connected store and a subscription to its own receiver. */
export async function addEndpoints(
  { masterKey, atEnd }: Drill,
  db: RawDb,
  answer?: Receiver["answer"],
): Promise<[Endpoint, Endpoint]> {
  const box = createSecretBox({ current: masterKey });
  const provider = await addProvider(db, box);
  const { partners } = await addTenants(db);
  const add = async (partner: TestPartner) => {
    const receiver = await Receiver.start(answer);
    atEnd(() => receiver.stop());
    return await addEndpoint({ db, box }, { partner, receiver, provider });
  };
  return [await add(partners[0]), await add(partners[1])];
}

/** Connects a store of a partner with a review site, and subscribes the partner to its receiver. */
export async function addEndpoint(
  { db, box }: { readonly db: RawDb; readonly box: SecretBox },
  { partner, receiver, provider }: Omit<Endpoint, "siteId"> & { readonly partner: TestPartner },
): Promise<Endpoint> {
  await insertSubscription({ db, box }, { partnerId: partner.id, url: receiver.url });
  return { receiver, provider, siteId: await connectStore(db, partner.accounts[0], { provider }) };
}

export interface Load {
  /** The names of the accepted reviews. */
  readonly accepted: string[];
  /** The counts of the answers, by status or kind of failure. */
  readonly answers: Map<string, number>;
  /** Lets the requests under way end, and sends no more. */
  stop(): Promise<void>;
}

const CLIENTS = 4;
const RETRY_MS = 50;

interface LoadOptions {
  readonly root?: string;
  readonly names?: string;
  readonly clients?: number;
  /** The pause of a client after each accepted request. */
  readonly paceMs?: number;
  /** The time after which a client gives a request up, to repeat it. */
  readonly timeoutMs?: number;
}

/**
 * Reports reviews from four clients, each one request at a time. A client repeats a request with the same id until it
 * is accepted, as a provider does.
 */
export function startLoad(
  api: ApiProcess,
  endpoints: readonly Endpoint[],
  { root = api.root, names = "early", clients = CLIENTS, paceMs, timeoutMs }: LoadOptions = {},
): Load {
  const accepted: string[] = [];
  const answers = new Map<string, number>();
  const over = new AbortController();
  const send = async (endpoint: Endpoint, event: object) => {
    const signal = timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) };
    const told = await api.report(endpoint.provider, [event], { root, ...signal }).then(
      ({ status }) => `${status}`,
      (error: unknown) => (error instanceof Error ? error.name : "error"),
    );
    answers.set(told, (answers.get(told) ?? 0) + 1);
    return told === "200";
  };
  const sending = Array.from({ length: clients }, async (_, client) => {
    const endpoint = endpoints[client % endpoints.length];
    if (endpoint === undefined) return;
    for (let n = 0; !over.signal.aborted; n++) {
      const name = `${names} review ${n} of client ${client}`;
      const event = created(endpoint.siteId, name);
      while (!(await send(endpoint, event))) await Bun.sleep(RETRY_MS);
      accepted.push(name);
      if (paceMs !== undefined) await Bun.sleep(paceMs);
    }
  });
  return {
    accepted,
    answers,
    async stop() {
      over.abort();
      await Promise.all(sending);
    },
  };
}

/** A fast machine accepts events several times as fast as a receiver that fails at times takes them. */
const DRAINS_MS = 300_000;

/** Waits until no entry is queued any more. */
export function untilDelivered(db: RawDb): Promise<void> {
  const isEmpty = async () => {
    const [row] = await db.sql<{ count: number }[]>`select count(*) from queued_entries`;
    return row?.count === 0;
  };
  return until("an empty queue", isEmpty, DRAINS_MS);
}

interface Judgement {
  /** The accepted reviews that the history lacks. */
  readonly unrecorded: readonly string[];
  /** The ids of events of the history that did not arrive. */
  readonly missing: readonly string[];
  /** The ids of events that arrived and are not in the history. */
  readonly unknown: readonly string[];
  /** The number of first arrivals after the one of a later event of their endpoint. */
  readonly overtaken: number;
}

/** Compares accepted reviews and arrivals with the history. Events of the last moments may be under way still. */
export async function judge(
  db: RawDb,
  endpoints: readonly Endpoint[],
  accepted: readonly string[],
  beforeMs = Number.POSITIVE_INFINITY,
): Promise<Judgement> {
  // The arrivals are read first, so that the history has each of their events.
  const arrivals = endpoints.map(({ receiver, siteId }) => ({ siteId, ids: receiver.eventIds }));
  const history = await db.sql<{ id: string; name: string; siteId: number }[]>`
    select h.event_id as id, r.external_review_id as name, h.store_review_site_id as "siteId"
      from review_history h join reviews r on r.id = h.review_id order by h.id`;
  const recorded = new Set(history.map(({ name }) => name));
  const verdicts = arrivals.map(({ siteId, ids }) => {
    const wanted = history.filter((one) => one.siteId === siteId).map(({ id }) => id);
    const places = new Map(wanted.map((id, place) => [id, place]));
    const arrived = new Set(ids);
    const known = ids.flatMap((id) => {
      const place = places.get(id);
      return place === undefined ? [] : [{ lane: "", place }];
    });
    return {
      missing: wanted.filter((id) => decodeTime(id) < beforeMs && !arrived.has(id)),
      unknown: [...arrived].filter((id) => !places.has(id)),
      overtaken: judgeArrivals(known).overtaken.length,
    };
  });
  return {
    unrecorded: accepted.filter((name) => !recorded.has(name)),
    missing: verdicts.flatMap(({ missing }) => missing),
    unknown: verdicts.flatMap(({ unknown }) => unknown),
    overtaken: verdicts.reduce((sum, { overtaken }) => sum + overtaken, 0),
  };
}

/**
 * Expects that every accepted review is in the history, that every event of the history was delivered, for the first
 * time in the order of the history, and that no attempt is recorded twice.
 */
export async function expectAllInOrder(
  db: RawDb,
  endpoints: readonly Endpoint[],
  accepted: readonly string[],
): Promise<void> {
  await untilDelivered(db);
  expect(await judge(db, endpoints, accepted)).toEqual({
    unrecorded: [],
    missing: [],
    unknown: [],
    overtaken: 0,
  });
  const twice = await db.sql`
    select subscription_id, event_id, round, attempt from delivery_attempts
     group by 1, 2, 3, 4 having count(*) > 1`;
  expect([...twice]).toEqual([]);
}
