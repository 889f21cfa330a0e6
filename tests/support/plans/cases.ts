// The hot statements as the product sends them, with a limit for the blocks that each may read.
import { ulid } from "ulid";

import type { Db } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import type { Decision } from "../../../dispatcher/actor/decide.ts";
import type { LoadRequest } from "../../../dispatcher/actor/event.ts";
import { createLeases } from "../../../dispatcher/shards/lease-queries.ts";
import { commitAttempts } from "../../../dispatcher/store/attempt-queries.ts";
import type { AttemptRecord } from "../../../dispatcher/store/attempt-queries.ts";
import { createStore } from "../../../dispatcher/store/store.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import type { Log } from "../../../src/lib/log.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import type { RecordedAction } from "../../../src/outbox/event.ts";
import { holdFreeSequences, holdSequences, recordActions } from "../../../src/outbox/queries.ts";
import { hastenFirstRetry } from "../../../src/webhooks/queries/entries.ts";
import { createSiteFinder, credentialsOf } from "../../../src/intake/queries/finders.ts";
import { insertReviews } from "../../../src/intake/queries/new-reviews.ts";
import {
  claimedActions,
  lookUpReports,
  lookUpSubjects,
  waitForRows,
} from "../../../src/intake/queries/look-up.ts";
import { peopleOf } from "../../../src/intake/queries/people.ts";
import { insertNew, updateReviews } from "../../../src/intake/queries/write.ts";
import { SHARDS } from "../../../src/outbox/schedule.ts";
import {
  BY_REVIEW,
  eventId,
  HOT,
  HOT_BATCH,
  NEIGHBOUR,
  NUMBERED,
  other,
  type PlanSizes,
  WITH_ROWS,
} from "./data.ts";
import { readCases, type PlanCase } from "./reads.ts";

const DISPATCHER = "DISPATCHER0000000000000001";
const HOUR_MS = 3_600_000;
const LOADS = 128;
const GROUP = 64;

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} };
const box = createSecretBox({ current: new Uint8Array(32) });

function storeOn(db: Db) {
  const config = { batchHourMs: HOUR_MS };
  return createStore({ db, clock: systemClock, box, log: quiet, config });
}

export function planCases(sizes: PlanSizes): PlanCase[] {
  return [
    ...loads(),
    ...commits(),
    ...appends(),
    ...groups(),
    ...shards(sizes),
    {
      name: "the first retry behind many queued entries",
      bound: 60,
      run: (db) => db.transaction((tx) => hastenFirstRetry(tx, WITH_ROWS)),
    },
    ...readCases(sizes),
  ];
}

function request(
  one: Pick<LoadRequest, "id" | "shard">,
  more: Partial<LoadRequest> = {},
): LoadRequest {
  return {
    id: one.id,
    shard: one.shard,
    generation: 1,
    after: 0,
    limit: 64,
    maxBytes: 1_000_000,
    exceptReviews: [],
    ...more,
  };
}

function load(name: string, bound: number, requests: readonly LoadRequest[]): PlanCase {
  return {
    name: `load, ${name}`,
    bound,
    run: (db) => storeOn(db).load(requests),
  };
}

function loads(): PlanCase[] {
  const reviews = Array.from({ length: 8 }, (_, n) => n + 1);
  return [
    load("64 of the long queue", 450, [request(HOT)]),
    load("64 from the 40,000th on", 450, [request(HOT, { after: 40_000 })]),
    load("64 but for 8 reviews", 450, [request(HOT, { exceptReviews: reviews })]),
    load("by review beside 20,000 waiting reviews", 60, [
      request(BY_REVIEW, { ordering: "review", exceptReviews: reviews }),
    ]),
    // Two statements: the first one cannot number entries beside rows, or with lanes by review.
    load("with sequence headers by review, behind 100,000 skipped rows", 200, [
      request(NUMBERED, { ordering: "review" }),
    ]),
    load("the settings with sequence headers of 100,000 rows", 100, [
      request(WITH_ROWS, { limit: 0 }),
    ]),
    {
      name: "the search for rows to postpone",
      bound: 40,
      run: (db) => storeOn(db).postpone(request(BY_REVIEW, { ordering: "review" })),
    },
    load("the neighbour of the long queue", 40, [request(NEIGHBOUR)]),
    load("settings alone", 30, [request(HOT, { limit: 0 })]),
    load(
      `${LOADS} subscriptions`,
      LOADS * 30,
      Array.from({ length: LOADS }, (_, n) => request(other(n + 1))),
    ),
  ];
}

function record(sequence: number, decision: Decision): AttemptRecord {
  return {
    id: ulidFloor(new Date()).slice(0, 10) + String(sequence).padStart(16, "0"),
    shard: HOT.shard,
    subscriptionId: HOT.id,
    sequence,
    isLogged: true,
    erasures: 0,
    eventId: eventId(sequence),
    event: "review_received",
    round: 1,
    attempt: 1,
    startedAt: new Date(),
    durationMs: 3,
    endedMs: 0,
    statusCode: decision.kind === "delivered" ? 200 : 500,
    errorCode: decision.kind === "delivered" ? null : "http_status",
    tlsReason: null,
    payloadFormat: 1,
    host: "partner.example",
    signature: "5a".repeat(32),
    previousSignature: null,
    bodyDigest: "d1".repeat(16),
    standardSignatures: null,
    sentNumber: null,
    sentSettled: null,
    headerNames: null,
    requestHeaders: null,
    requestBody: null,
    payloadMode: "full",
    batchJobId: null,
    recordedAt: new Date(),
    responseHeaders: {},
    responseExcerpt: "",
    responseTruncated: false,
    resent: false,
    possiblyRepeated: false,
    decision,
  };
}

function commit(name: string, bound: number, records: readonly AttemptRecord[]): PlanCase {
  return {
    name: `commit, ${name}`,
    bound,
    run: (db) => commitAttempts(db, DISPATCHER, { records, now: new Date(), monotonicMs: 0 }),
  };
}

const ofRow = (sequence: number) => ({
  shard: WITH_ROWS.shard,
  subscriptionId: WITH_ROWS.id,
  sequence,
});

function commits(): PlanCase[] {
  const delivered = Array.from({ length: GROUP }, (_, n) => record(n + 1, { kind: "delivered" }));
  const retry: Decision = { kind: "retry", delayMs: 60_000 };
  const mixed = delivered.map((one, n) => (n % 2 === 0 ? one : record(n + 1, retry)));
  return [
    commit("one", 90, delivered.slice(0, 1)),
    commit(`smooth, ${GROUP}`, GROUP * 40, delivered),
    commit(`mixed, ${GROUP}`, GROUP * 50, mixed),
    commit(
      `of rows, ${GROUP}`,
      GROUP * 32,
      mixed.map((one) => ({ ...one, ...ofRow(one.sequence + 50_000), isLogged: false })),
    ),
    commit(
      `read before an erasure, ${GROUP}`,
      GROUP * 50,
      delivered.map((one) => ({ ...one, erasures: -1 })),
    ),
  ];
}

function action(n: number): RecordedAction {
  return {
    eventId: ulid(),
    event: "review_received",
    partnerId: HOT.partnerId,
    accountId: 1,
    storeId: 1,
    storeReviewSiteId: 1,
    reviewId: n + 1,
    actor: { type: "system", id: null, name: "google" },
    about: {
      review: {
        id: n + 1,
        external_review_id: "ext",
        store_id: 1,
        review_site_id: 1,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada",
      },
    },
    metadata: {},
    occurredAt: new Date(),
  };
}

function append(count: number, bound: number): PlanCase {
  return {
    name: `append, ${count}`,
    bound,
    run: (db) =>
      db.transaction((tx) =>
        recordActions(
          tx,
          Array.from({ length: count }, (_, n) => action(n)),
          new Date(),
        ),
      ),
  };
}

function appends(): PlanCase[] {
  return [append(1, 150), append(100, 100 * 90)];
}

const FACTS = {
  rate: 4,
  reviewer: "Ada",
  reviewerEmail: null,
  content: "Fine.",
  profanity: [],
  removedAt: null,
  erasedAt: null,
};

/** Statements for a batch of this many events; half of their reviews exist and change. */
function group(count: number, bound: number): PlanCase {
  const asked = Array.from({ length: count }, (_, n) => ({
    slug: "site",
    id: `event-${n}`,
    siteId: 1,
    externalReviewId: n % 2 === 0 ? `new-${n}` : `ext-${n}`,
    usesReview: true,
    createsReview: true,
    changesSite: n === 1,
  }));
  return {
    name: `batch of ${count}`,
    bound,
    run: (db) =>
      db.transaction(async (tx) => {
        const now = new Date();
        await credentialsOf(tx, ["site"]);
        await waitForRows(tx, { given: asked, siteIds: [], reviewIds: [] });
        await holdSequences(tx, [HOT.partnerId], false);
        await holdSequences(tx, [HOT.partnerId], true);
        const known = await lookUpReports(tx, asked);
        const created = known.flatMap(({ newId: id, siteId, externalReviewId }) =>
          id === null
            ? []
            : { ...FACTS, id, storeReviewSiteId: siteId, externalReviewId, reviewedAt: now },
        );
        await insertNew(tx, { claims: asked, created, now });
        const changed = known.flatMap(({ review }) =>
          review ? { ...review, rate: 5, updatedAt: now } : [],
        );
        await updateReviews(tx, changed);
      }),
  };
}

const LARGE = Array.from({ length: 500 }, (_, n) => n + 1);

/** Statements for a batch of this many actions on reviews that exist. */
function subjects(count: number, bound: number): PlanCase {
  const reviewIds = LARGE.slice(0, count);
  const named = { reviewIds, siteIds: [1] };
  return {
    name: `batch of ${count} actions`,
    bound,
    run: (db) =>
      db.transaction(async (tx) => {
        await waitForRows(tx, { given: [], ...named });
        await holdFreeSequences(tx, { partners: [], ...named });
        const asked = reviewIds.map((reviewId) => ({ reviewId, siteId: null }));
        const found = await lookUpSubjects(tx, [...asked, { reviewId: null, siteId: 1 }]);
        await claimedActions(
          tx,
          reviewIds.map((id) => ({ serviceId: 1, id: `action-${id}` })),
        );
        await peopleOf(tx, { userIds: [1], ...named });
        const changed = found.flatMap(({ review }) =>
          review === undefined ? [] : [{ ...review, rate: 5, updatedAt: new Date() }],
        );
        await updateReviews(tx, changed);
      }),
  };
}

/** A separate case, because a scan of connections would be invisible among the writes. */
function connections(): PlanCase {
  const asked = LARGE.map((siteId) => ({
    slug: "site",
    id: `connection-${siteId}`,
    siteId,
    externalReviewId: null,
    usesReview: false,
    createsReview: false,
    changesSite: true,
  }));
  return {
    name: `connections of ${LARGE.length}`,
    bound: LARGE.length * 24,
    run: (db) =>
      db.transaction(async (tx) => {
        await waitForRows(tx, { given: asked, siteIds: [], reviewIds: [] });
        await lookUpReports(tx, asked);
      }),
  };
}

/** The statements of a batch of this many new reviews. */
function newReviews(count: number, bound: number): PlanCase {
  return {
    name: `batch of ${count} new reviews`,
    bound,
    run: async (db) => {
      const connection = (await createSiteFinder(db)([1])).get(1);
      const site = (await credentialsOf(db, ["site"])).get("site");
      if (connection === undefined || site === undefined) throw new Error("There is no site.");
      const { sealedSecret } = site;
      await db.transaction(async (tx) => {
        const now = new Date();
        const numbers = Array.from({ length: count }, (_, n) => n + 1);
        await insertReviews(
          tx.run,
          {
            requests: [{ slug: "site", sealedSecret, isTimed: true }],
            claims: numbers.map((n) => ({ slug: "site", id: `new-${n}` })),
            connections: [{ ...connection, id: 1 }],
            created: numbers.map((id) => ({
              ...FACTS,
              id,
              storeReviewSiteId: 1,
              externalReviewId: `brand-new-${id}`,
              reviewedAt: now,
            })),
            actions: numbers.map((n) => ({ ...action(n), reviewId: n })),
            partners: [HOT.partnerId],
          },
          now,
        );
      });
    },
  };
}

function groups(): PlanCase[] {
  return [
    group(1, 160),
    group(64, 64 * 80),
    group(500, 500 * 80),
    subjects(64, 64 * 80),
    subjects(500, 500 * 80),
    newReviews(1, 160),
    newReviews(64, 64 * 80),
    connections(),
  ];
}

function shards({ others, batches }: PlanSizes): PlanCase[] {
  const all = Array.from({ length: SHARDS }, (_, shard) => shard);
  const batch = { id: ulid(), dispatcherId: DISPATCHER, subscriptionId: HOT_BATCH.id };
  return [
    {
      name: "lease, renewed and claimed",
      bound: 120,
      run: async (db) => {
        const leases = createLeases(db, db);
        await leases.renew(DISPATCHER);
        await leases.assign(DISPATCHER);
      },
    },
    {
      name: `sweep, ${others} with entries, ${batches} batches`,
      bound: 200 + 24 * others,
      run: (db) => storeOn(db).sweep(all),
    },
    {
      name: "webhook batch of 50 moved",
      bound: 50 * 60,
      run: (db) => storeOn(db).dispatchBatch({ ...batch, now: new Date() }),
    },
  ];
}
