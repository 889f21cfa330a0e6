import { beforeEach, describe, expect, test } from "bun:test";

import type { Log } from "../../../src/lib/log.ts";
import type { SecretBox } from "../../../src/lib/secrets.ts";
import type { WriterPool } from "../../../src/outbox/writer-pool.ts";
import type { Db } from "../../../db/client.ts";
import { CHARS_PER_BATCH, createIntake, type Intake } from "../../../src/intake/group-commit.ts";
import type { Decision, ProviderRequest, ServiceRequest } from "../../../src/intake/change.ts";
import { serviceRequest } from "../../../src/intake/service-input.ts";
import type { Action } from "../../../src/intake/service-model.ts";
import { charsOf } from "../../../src/intake/profanity.ts";
import { readEvents } from "../../../src/intake/provider-input.ts";
import type { Site } from "../../../src/intake/queries/look-up.ts";
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

  test("is retried individually if a batch of its partners' queue cannot be written", async () => {
    blocked.add(1);
    decide = () => {
      if (transactions.length === 1) throw new Error("The batch is refused.");
      return ACCEPTED;
    };
    expect((await submit(request([1]))).kind).toBe("accepted");
    expect(transactions).toEqual(["of 1", "of 1"]);
  });

  test("gives up after 2 s if its row stays locked", async () => {
    decide = () => {
      clock.advance(500);
      return deferred("row");
    };
    expect(await submit(request([1])).catch(({ code }) => code)).toBe("unavailable");
    // The batch comes first, then retries at 0, 500, 1000, 1500 and 2000 ms.
    expect(transactions).toEqual(["group", "of 1", "of 1", "of 1", "of 1", "of 1"]);
  });

  test("is not retried if its provider's secret has changed", async () => {
    decide = () => deferred("secret");
    expect<unknown>(await submit(request([1]))).toEqual(deferred("secret"));
    expect(transactions).toEqual(["group"]);
  });
});

describe("while a request waits in its partners' queue", () => {
  /** Ends the first transaction of the queue. */
  let end: () => void;
  let first: ReturnType<Intake>;

  beforeEach(async () => {
    const { promise, resolve } = Promise.withResolvers<Decision>();
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

describe("a request of a service", () => {
  test("is written with others, whatever its partners are", async () => {
    blocked.add(1);
    await submit(ofService(1));
    expect(transactions).toEqual(["group"]);
  });

  test.each([
    [32, ["group"]],
    [33, ["of 1 2"]],
  ])("with %d actions is written by the transactions %j", async (actions, expected) => {
    named = [2, 1];
    await submit(ofService(actions));
    expect(transactions).toEqual(expected);
  });

  test("waits for the sequences of those partners alone for which the service acts", async () => {
    named = [3, 2, 1];
    decide = (transaction) => (transaction === "group" ? deferred("sequence") : ACCEPTED);
    await submit({ ...ofService(1), actsForPartners: [1, 3] });
    expect(transactions).toEqual(["group", "of 1 3"]);
  });
});

const ACCEPTED: Decision = { kind: "accepted", accepted: 1, unchanged: 0 };

const deferred = (reason: "sequence" | "row" | "secret"): Decision => ({
  kind: "deferred",
  reason,
});

let clock: FakeClock;

let blocked: Set<number>;

/** The partners of what the request of a service names. */
let named: readonly number[];

/** The transactions, each with the partners whose share of the pool it uses; a batch uses no share. */
let transactions: string[];

/** The decision for the request of a transaction; each transaction has one request here. */
let decide: (transaction: string) => Promise<Decision> | Decision;

let submit: Intake;

beforeEach(() => {
  clock = createFakeClock();
  blocked = new Set();
  transactions = [];
  decide = () => ACCEPTED;
  named = [];
  // PostgreSQL does the work; the test needs only the decisions.
  const work = async (transaction: string): Promise<unknown> => {
    transactions.push(transaction);
    return { decisions: [await decide(transaction)], written: { wakes: [], isMailed: false } };
  };
  const writerPool = {
    group: () => work("group"),
    transaction: (partners: readonly number[]) => work(`of ${partners.join(" ")}`),
    isBlocked: (partners: readonly number[]) => partners.some((one) => blocked.has(one)),
  } as unknown as WriterPool;
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
  const box = {} as SecretBox;
  const rows = { where: async () => named.map((id) => ({ id })) };
  const db = { selectDistinct: () => ({ from: () => rows }) } as unknown as Db;
  submit = createIntake({
    db,
    writerPool,
    clock,
    box,
    config: { serverRoot: "" },
    log,
    schedule: { wake() {}, wakeMailer() {} },
  });
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
    sender: "provider",
    chars: charsOf(read.changes),
    slug: "google",
    signed: { sealedSecret: "sealed", isTimed: false },
    read,
    profanity: new Map(),
    sites: new Map(partners.map((partnerId) => [partnerId, { partnerId } as Site])),
  };
}

/** A request of a service with this number of actions. */
function ofService(count: number): ServiceRequest {
  const now = new Date("2026-06-01T12:00:00Z");
  const action = (n: number): Action => ({
    id: `${n}`,
    event: "review_removed",
    actor: { type: "system" },
    occurred_at: now.toISOString(),
    review_id: n + 1,
  });
  const service = { serviceId: 5, actsForPartners: null };
  return serviceRequest(
    service,
    Array.from({ length: count }, (_, n) => action(n)),
    now,
  );
}
