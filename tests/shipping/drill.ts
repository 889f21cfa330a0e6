import { afterEach, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { startStores } from "../../scripts/demo/stores/keep.ts";
import { createSecretBox, type SecretBox } from "../../src/lib/secrets.ts";
import { placeOf } from "../../src/sdk/typescript/src/index.ts";
import { addProvider, connectStore, created, type TestProvider } from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { insertSubscription } from "../support/outbox.ts";
import type { ApiProcess } from "../support/processes/api-process.ts";
import { addTenants, type TestPartner } from "../support/tenants.ts";
import { type Accepted, type Fault, type Post, reviewKey } from "../verdicts/facts.ts";
import { readTables } from "../verdicts/read-tables.ts";
import { judge } from "../verdicts/violations.ts";

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
    ...(postgres && { postgres: { durable: true, settings: ["track_commit_timestamp=on"] } }),
    redis: true,
  });
  atEnd(() => stores.stop());
  return { databaseUrl: stores.databaseUrl ?? "", redisUrl: stores.redisUrl ?? "" };
}

const RETRY_DELAYS_MS = [300, 600, 900];

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
    RETRY_DELAYS_MS: RETRY_DELAYS_MS.join(","),
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
  /** The accepted events. */
  readonly taken: readonly Accepted[];
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
  const taken: Accepted[] = [];
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
      const event = created(endpoint.siteId, name, { reviewer: name });
      while (!(await send(endpoint, event))) await Bun.sleep(RETRY_MS);
      accepted.push(name);
      const review = reviewKey(endpoint.siteId, name);
      taken.push({ eventId: String(event["id"]), review, marker: name });
      if (paceMs !== undefined) await Bun.sleep(paceMs);
    }
  });
  return {
    accepted,
    taken,
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

/** The rules that a drill cannot judge: it keeps no wrong answers and no ends of processes. */
const UNJUDGED = ["answers are right", "processes live"];

interface Judged {
  readonly db: RawDb;
  readonly masterKey: Uint8Array;
  readonly endpoints: readonly Endpoint[];
  readonly load: Pick<Load, "taken">;
  /** The kills and cuts. Only they allow that an attempt is repeated. */
  readonly faults?: readonly Fault[];
  readonly retryDelaysMs?: readonly number[];
}

/**
 * Waits until all is delivered, and judges tables and arrivals by the rules of tests/verdicts: nothing accepted is lost,
 * invented, overtaken, misnumbered, counted wrong or signed wrong.
 */
export async function expectNoViolations({
  db,
  masterKey,
  endpoints,
  load,
  faults = [],
  retryDelaysMs = RETRY_DELAYS_MS,
}: Judged): Promise<void> {
  await untilDelivered(db);
  const tables = await readTables({ db, box: createSecretBox({ current: masterKey }) });
  // The demo's own subscriptions have no receivers here.
  const hosts = new Set(endpoints.map(({ receiver }) => new URL(receiver.url).host));
  const subscriptions = tables.subscriptions.filter(({ host }) => hosts.has(host));
  expect(subscriptions).toHaveLength(endpoints.length);
  const ids = new Set(subscriptions.map(({ id }) => id));
  const watched = <T extends { readonly subscriptionId: string }>(rows: readonly T[]) =>
    rows.filter(({ subscriptionId }) => ids.has(subscriptionId));
  // Each subscription is created before the first event, some by an insert that leaves no row in the audit log.
  const creations = subscriptions.map(({ id, createdMs, filter }) => ({
    operation: {
      kind: "create" as const,
      subscriptionId: id,
      startedMs: createdMs,
      endedMs: createdMs,
      status: 201,
      filter,
    },
    audit: { action: "WEBHOOK_CREATED", subscriptionId: id, held: null, committedMs: createdMs },
  }));
  const { findings, unjudged } = judge({
    ...tables,
    subscriptions,
    queued: watched(tables.queued),
    settled: watched(tables.settled),
    attempts: watched(tables.attempts),
    batchEntries: watched(tables.batchEntries),
    audit: [...watched(tables.audit), ...creations.map(({ audit }) => audit)],
    operations: creations.map(({ operation }) => operation),
    posts: postsOf(endpoints.map(({ receiver }) => receiver)),
    accepted: load.taken,
    faults,
    retryDelaysMs,
  });
  expect(findings.slice(0, MOST_SHOWN)).toEqual([]);
  expect(unjudged).toEqual(UNJUDGED);
}

/** The most violations that a failure shows. */
const MOST_SHOWN = 10;

/** Returns the requests of some receivers in order of arrival. */
function postsOf(receivers: readonly Pick<Receiver, "received">[]): Post[] {
  return receivers
    .flatMap(({ received }) =>
      received.map(({ at, headers, body, answered }): Post => ({
        atMs: performance.timeOrigin + at,
        host: headers["host"] ?? "",
        eventId: headers["x-svc-delivery"] ?? "",
        event: headers["x-svc-event"] ?? "",
        attempt: Number(headers["x-svc-attempt"]),
        signature: headers["x-svc-signature"] ?? "",
        previousSignature: headers["x-svc-signature-previous"] ?? null,
        place: placeOf(headers),
        body,
        status: answered?.status ?? null,
        endedMs: answered === undefined ? null : performance.timeOrigin + answered.at,
      })),
    )
    .toSorted((a, b) => a.atMs - b.atMs);
}
