import { beforeEach, describe, expect, test } from "bun:test";

import type { Log } from "../../../src/lib/log.ts";
import type { SecretBox } from "../../../src/lib/secret-box.ts";
import type { WriterPool } from "../../../src/outbox/writer-pool.ts";
import { CHARS_PER_GROUP, createTaking, type Taken } from "../../../src/providers/group.ts";
import type { Admission, Asking } from "../../../src/providers/admit.ts";
import { readEvents } from "../../../src/providers/input.ts";
import { createFakeClock, type FakeClock } from "../../support/clock.ts";

const ADMITTED: Admission = { kind: "admitted", fresh: [] };
const left = (because: "sequence" | "row" | "secret"): Admission => ({ kind: "left", because });

let clock: FakeClock;
let stuck: Set<number>;
/** The transactions, each with the partners whose room it takes; a group takes none. */
let transactions: string[];
/** What becomes of the request of a transaction: each is for one request here. */
let admission: (transaction: string) => Promise<Admission> | Admission;
let take: (asking: Asking) => Promise<Taken>;

beforeEach(() => {
  clock = createFakeClock();
  stuck = new Set();
  transactions = [];
  admission = () => ADMITTED;
  // The work is done in PostgreSQL; here only its admissions are needed.
  const work = async (transaction: string): Promise<unknown> => {
    transactions.push(transaction);
    return { admissions: [await admission(transaction)], wakes: [] };
  };
  const writerPool = {
    group: () => work("group"),
    transaction: (partners: readonly number[]) => work(`of ${partners.join(" ")}`),
    isBlocked: (partners: readonly number[]) => partners.some((one) => stuck.has(one)),
  } as unknown as WriterPool;
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
  const box = {} as SecretBox;
  take = createTaking({ writerPool, clock, box, log, schedule: { wake: async () => {} } });
});

/** A request of so many reviews with so many characters each, of these partners. */
function asking(partners: readonly number[], { events = 1, chars = 1 } = {}): Asking {
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
  return { slug: "google", sealedSecret: "sealed", read, profanity: new Map(), partners };
}

const kindOf = (taken: Taken) => (taken.kind === "left" ? taken.because : taken.kind);

describe("a request", () => {
  const LARGEST = { events: 8, chars: CHARS_PER_GROUP / 8 };

  test.each([
    ["of 32 events", { events: 32 }, "group"],
    ["of 33 events", { events: 33 }, "of 1"],
    ["with as much text as a group may have", LARGEST, "group"],
    ["with more text than a group may have", { ...LARGEST, events: 9 }, "of 1"],
  ])("%s is taken by a transaction: %j, %s", async (_, size, expected) => {
    expect((await take(asking([1], size))).kind).toBe("taken");
    expect(transactions).toEqual([expected]);
  });

  test("whose partner's sequence is held waits for it, and does not go into a group", async () => {
    stuck.add(1);
    await take(asking([2, 1]));
    await take(asking([2]));
    expect(transactions).toEqual(["of 2 1", "group"]);
  });

  test("that meets a held sequence in its group goes on in the line of its partners", async () => {
    admission = (transaction) => (transaction === "group" ? left("sequence") : ADMITTED);
    expect((await take(asking([1]))).kind).toBe("taken");
    expect(transactions).toEqual(["group", "of 1"]);
  });

  test("that needs a row that somebody else holds is tried alone until it has it", async () => {
    const answers = [left("row"), left("row"), left("sequence"), ADMITTED];
    admission = () => answers.shift() ?? ADMITTED;
    expect((await take(asking([1]))).kind).toBe("taken");
    expect(transactions).toEqual(["group", "of 1", "of 1", "of 1"]);
  });

  test("that meets somebody else each time is given up after 2 s", async () => {
    admission = () => {
      clock.advance(500);
      return left("row");
    };
    expect(kindOf(await take(asking([1])))).toBe("row");
    // After the group: at 0, 500, 1000, 1500 and 2000 ms.
    expect(transactions).toEqual(["group", "of 1", "of 1", "of 1", "of 1", "of 1"]);
  });

  test("whose provider has another secret by now is not tried again", async () => {
    admission = () => left("secret");
    expect(kindOf(await take(asking([1])))).toBe("secret");
    expect(transactions).toEqual(["group"]);
  });
});

describe("while a request waits in a line", () => {
  /** Ends the first transaction of the line. */
  let end: () => void;
  let first: Promise<Taken>;

  beforeEach(async () => {
    const { promise, resolve } = Promise.withResolvers<Admission>();
    end = () => resolve(ADMITTED);
    admission = (transaction) => (transaction === "group" ? ADMITTED : promise);
    first = take(asking([1, 2], { events: 33 }));
    await Bun.sleep(0);
    expect(transactions).toEqual(["of 1 2"]);
  });

  test("others of its partners join it, in whatever order they name them", async () => {
    const next = take(asking([2, 1]));
    await Bun.sleep(0);
    expect(transactions).toEqual(["of 1 2"]);
    end();
    await Promise.all([first, next]);
    expect(transactions).toEqual(["of 1 2", "of 2 1"]);
  });

  test("those of other partners go into a group", async () => {
    await take(asking([1]));
    expect(transactions).toEqual(["of 1 2", "group"]);
    end();
    await first;
  });

  test("nobody joins it who comes after its end", async () => {
    end();
    await first;
    await take(asking([1, 2]));
    expect(transactions).toEqual(["of 1 2", "group"]);
  });
});
