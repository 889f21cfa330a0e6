import { beforeEach, describe, expect, test } from "bun:test";

import type { Log } from "../../../src/lib/log.ts";
import type { SecretBox } from "../../../src/lib/secret-box.ts";
import type { WriterPool } from "../../../src/outbox/writer-pool.ts";
import { CHARS_PER_BATCH, createBatcher } from "../../../src/providers/batch.ts";
import type {
  BatchDecision,
  ProviderRequest,
  RequestResult,
} from "../../../src/providers/decide-batch.ts";
import { readEvents } from "../../../src/providers/input.ts";
import type { Site } from "../../../src/providers/queries/look-up.ts";
import { createFakeClock, type FakeClock } from "../../support/clock.ts";

describe("a request", () => {
  const LARGEST = { events: 8, chars: CHARS_PER_BATCH / 8 };

  test.each([
    ["of 32 events", { events: 32 }, "group"],
    ["of 33 events", { events: 33 }, "of 1"],
    ["with as much text as a batch may have", LARGEST, "group"],
    ["with more text than a batch may have", { ...LARGEST, events: 9 }, "of 1"],
  ])("%s is written by a transaction: %j, %s", async (_, size, expected) => {
    expect((await submit(request([1], size))).kind).toBe("accepted");
    expect(transactions).toEqual([expected]);
  });

  test("waits in its partner's queue while the sequence is locked, and enters no batch", async () => {
    blocked.add(1);
    await submit(request([2, 1]));
    await submit(request([2]));
    expect(transactions).toEqual(["of 1 2", "group"]);
  });

  test("moves to the queue of its partners if its batch finds the sequence locked", async () => {
    decide = (transaction) => (transaction === "group" ? deferred("sequence") : ACCEPTED);
    expect((await submit(request([1]))).kind).toBe("accepted");
    expect(transactions).toEqual(["group", "of 1"]);
  });

  test("is retried individually while another transaction holds a row that it needs", async () => {
    const answers = [deferred("row"), deferred("row"), deferred("sequence"), ACCEPTED];
    decide = () => answers.shift() ?? ACCEPTED;
    expect((await submit(request([1]))).kind).toBe("accepted");
    expect(transactions).toEqual(["group", "of 1", "of 1", "of 1"]);
  });

  test("gives up after 2 s if its row stays locked", async () => {
    decide = () => {
      clock.advance(500);
      return deferred("row");
    };
    expect(kindOf(await submit(request([1])))).toBe("row");
    // The batch comes first, then retries at 0, 500, 1000, 1500 and 2000 ms.
    expect(transactions).toEqual(["group", "of 1", "of 1", "of 1", "of 1", "of 1"]);
  });

  test("is not retried if its provider's secret has changed", async () => {
    decide = () => deferred("secret");
    expect(kindOf(await submit(request([1])))).toBe("secret");
    expect(transactions).toEqual(["group"]);
  });
});

describe("while a request waits in its partners' queue", () => {
  /** Ends the first transaction of the queue. */
  let end: () => void;
  let first: Promise<RequestResult>;

  beforeEach(async () => {
    const { promise, resolve } = Promise.withResolvers<BatchDecision>();
    end = () => resolve(ACCEPTED);
    decide = (transaction) => (transaction === "group" ? ACCEPTED : promise);
    first = submit(request([1, 2], { events: 33 }));
    await Bun.sleep(0);
    expect(transactions).toEqual(["of 1 2"]);
  });

  test("other requests of the same partners join the queue, in any order of the partners", async () => {
    const next = submit(request([2, 1]));
    await Bun.sleep(0);
    expect(transactions).toEqual(["of 1 2"]);
    end();
    await Promise.all([first, next]);
    expect(transactions).toEqual(["of 1 2", "of 1 2"]);
  });

  test("requests of other partners enter a batch", async () => {
    await submit(request([1]));
    expect(transactions).toEqual(["of 1 2", "group"]);
    end();
    await first;
  });

  test("a request that arrives after its end enters a batch", async () => {
    end();
    await first;
    await submit(request([1, 2]));
    expect(transactions).toEqual(["of 1 2", "group"]);
  });
});

const ACCEPTED: BatchDecision = { kind: "accepted", newEvents: [] };

const deferred = (reason: "sequence" | "row" | "secret"): BatchDecision => ({
  kind: "deferred",
  reason,
});

let clock: FakeClock;

let blocked: Set<number>;

/** The transactions, each with the partners whose share of the pool it uses; a batch uses no share. */
let transactions: string[];

/** The decision for the request of a transaction; each transaction has one request here. */
let decide: (transaction: string) => Promise<BatchDecision> | BatchDecision;

let submit: (request: ProviderRequest) => Promise<RequestResult>;

beforeEach(() => {
  clock = createFakeClock();
  blocked = new Set();
  transactions = [];
  decide = () => ACCEPTED;
  // PostgreSQL does the work; the test needs only the decisions.
  const work = async (transaction: string): Promise<unknown> => {
    transactions.push(transaction);
    return { decisions: [await decide(transaction)], wakes: [] };
  };
  const writerPool = {
    group: () => work("group"),
    transaction: (partners: readonly number[]) => work(`of ${partners.join(" ")}`),
    isBlocked: (partners: readonly number[]) => partners.some((one) => blocked.has(one)),
  } as unknown as WriterPool;
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
  const box = {} as SecretBox;
  submit = createBatcher({ writerPool, clock, box, log, schedule: { wake() {}, wakeMailer() {} } });
});

/** A request with this number of reviews and characters each, for these partners. */
function request(partners: readonly number[], { events = 1, chars = 1 } = {}): ProviderRequest {
  const at = "2026-06-01T12:00:00.000+00:00";
  const body = {
    events: Array.from({ length: events }, (_, n) => ({
      id: `${n}`,
      type: "review.created",
      occurred_at: at,
      store_review_site_id: 5,
      review: {
        external_review_id: `${n}`,
        rate: 4,
        reviewer: null,
        content: "x".repeat(chars),
        reviewed_at: at,
      },
    })),
  };
  const read = readEvents(body, new Date(at));
  return {
    slug: "google",
    signed: { sealedSecret: "sealed", isTimed: false },
    read,
    profanity: new Map(),
    sites: new Map(partners.map((partnerId) => [partnerId, { partnerId } as Site])),
  };
}

const kindOf = (result: RequestResult) =>
  result.kind === "deferred" ? result.reason : result.kind;
