// The profanity check takes long for long texts, so it runs before a transaction holds any locks.
import { describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { acceptEvents } from "../../../src/intake/provider-actions.ts";
import { charsOf, checkTexts } from "../../../src/intake/profanity.ts";
import {
  CHANGES_PER_BATCH,
  CHARS_PER_BATCH,
  createIntake,
} from "../../../src/intake/group-commit.ts";
import type { ProviderRequest } from "../../../src/intake/change.ts";
import { readEvents } from "../../../src/intake/provider-input.ts";

describe("every text of a request is checked", () => {
  test("before the request enters a batch", async () => {
    expect(await stepsOf([created("a"), created("b")])).toEqual([
      "checked",
      "checked",
      "submitted",
    ]);
  });

  test("once, with a turn of the event loop between long texts", async () => {
    const seen: string[] = [];
    const find = (text: string) => {
      seen.push(text);
      return ["word"];
    };
    const texts = ["a".repeat(10_000), "b", "b", "c".repeat(9_999), "d"];
    const { changes } = requestOf(texts).read;
    setImmediate(() => seen.push("turn"));
    const checked = await checkTexts(find, changes);
    expect(seen).toEqual([texts[0] ?? "", "turn", "b", texts[3] ?? "", "d"]);
    expect(checked.get("b")).toEqual(["word"]);
  });
});

const NO_STORE = Object.assign(new Error("not here"), { code: "57P01" });

/** Returns how many transactions write these concurrent requests. */
async function transactionsOf(requests: readonly ProviderRequest[]): Promise<number> {
  let transactions = 0;
  const begin = async () => {
    transactions++;
    throw NO_STORE;
  };
  const deps = {
    clock,
    sites: async () => new Map(),
    schedule: { wake: async () => {} },
    writerPool: {
      isBlocked: () => false,
      group: begin,
      transaction: begin,
    },
  };
  const submit = createIntake(Object.assign(Object.create(null), deps));
  await Promise.allSettled(requests.map((one) => submit(one)));
  return transactions;
}

describe("a batch", () => {
  const half = CHARS_PER_BATCH / 2;
  const text = (chars: number) => {
    const contents: string[] = [];
    for (let left = chars; left > 0; left -= 20_000)
      contents.push("x".repeat(Math.min(left, 20_000)));
    return requestOf(contents);
  };

  test.each([
    [half, half, 1],
    [half, half + 1, 2],
  ])("for requests of %d and %d characters needs %d transactions", async (a, b, transactions) => {
    expect(await transactionsOf([text(a), text(b)])).toBe(transactions);
  });

  test("may hold a single request with longer texts", async () => {
    expect(await transactionsOf([text(2 * CHARS_PER_BATCH)])).toBe(1);
  });

  test.each([
    [0, 1],
    [1, 2],
  ])("with its maximum of events and %d more needs %d transactions", async (more, transactions) => {
    const requests = Array.from({ length: CHANGES_PER_BATCH / 32 }, () =>
      requestOf(Array.from({ length: 32 }, () => "short")),
    );
    if (more > 0) requests.push(requestOf(["short"]));
    expect(await transactionsOf(requests)).toBe(transactions);
  });
});

const SITE = 7;
let serial = 0;

// A batch may wait 3 ms for further requests, so a fake clock would never let it start.
const clock = systemClock;

const UNSIGNED = { sealedSecret: "", isTimed: false };

const requestOf = (contents: readonly string[]): ProviderRequest => {
  const read = readEvents({ events: contents.map(created) }, clock.now());
  const chars = charsOf(read.changes);
  const by = { sender: "provider", slug: "google", signed: UNSIGNED } as const;
  return { ...by, read, profanity: new Map(), sites: new Map(), chars };
};

function created(content: string) {
  serial++;
  return {
    id: `event-${serial}`,
    type: "review.created",
    store_review_site_id: SITE,
    occurred_at: "2026-06-01T00:00:00Z",
    review: {
      external_review_id: `review-${serial}`,
      rate: 5,
      reviewer: null,
      content,
      reviewed_at: "2026-06-01T00:00:00Z",
    },
  };
}

/** Returns the steps of a request in order: `checked` for each text, then `submitted`. */
async function stepsOf(events: readonly object[]): Promise<string[]> {
  const steps: string[] = [];
  const profanity = () => {
    steps.push("checked");
    return [];
  };
  const deps = {
    clock,
    profanity,
    sites: async () => new Map(),
    signatures: { signedOf: () => UNSIGNED },
    intake: async () => {
      steps.push("submitted");
      return { kind: "accepted", accepted: events.length, unchanged: 0 };
    },
  };
  const request = Object.assign(Object.create(null), { body: { events } });
  await acceptEvents(Object.assign(Object.create(null), deps), "google", request).catch(() => {});
  return steps;
}
