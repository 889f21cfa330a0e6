// The profanity check takes long for long texts, so it is made before a transaction holds anything.
import { describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { takeEvents } from "../../../src/providers/actions.ts";
import { checkTexts } from "../../../src/providers/profanity.ts";
import { CHARS_PER_GROUP, createTaking, EVENTS_PER_GROUP } from "../../../src/providers/group.ts";
import type { Asking } from "../../../src/providers/admit.ts";
import { readEvents } from "../../../src/providers/input.ts";

const SITE = 7;
let serial = 0;

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

// A group may wait 3 ms for company, which a clock that stands still would not let pass.
const clock = systemClock;
const asking = (contents: readonly string[]): Asking => {
  const read = readEvents({ events: contents.map(created) }, clock.now());
  return { slug: "google", sealedSecret: "", read, profanity: new Map(), partners: [] };
};

/** What a request does, in order: `checked` for each text, then how it is taken. */
async function stepsOf(events: readonly object[]): Promise<string[]> {
  const steps: string[] = [];
  const profanity = () => {
    steps.push("checked");
    return [];
  };
  const deps = {
    clock,
    profanity,
    partners: async () => [],
    signatures: { sealedSecretOf: () => "" },
    take: async () => {
      steps.push("joined");
      return { kind: "taken", accepted: events.length, woken: Promise.resolve() };
    },
  };
  const request = Object.assign(Object.create(null), { body: { events } });
  await takeEvents(Object.assign(Object.create(null), deps), "google", request).catch(() => {});
  return steps;
}

describe("every text of a request is checked", () => {
  test("before it joins a group", async () => {
    expect(await stepsOf([created("a"), created("b")])).toEqual(["checked", "checked", "joined"]);
  });

  test("once, and long ones with a turn of the event loop between them", async () => {
    const seen: string[] = [];
    const find = (text: string) => {
      seen.push(text);
      return ["word"];
    };
    const texts = ["a".repeat(10_000), "b", "b", "c".repeat(9_999), "d"];
    const { events } = asking(texts).read;
    setImmediate(() => seen.push("turn"));
    const checked = await checkTexts(find, events);
    expect(seen).toEqual([texts[0] ?? "", "turn", "b", texts[3] ?? "", "d"]);
    expect(checked.get("b")).toEqual(["word"]);
  });
});

const NO_STORE = Object.assign(new Error("not here"), { code: "57P01" });

/** How many transactions take these requests when they come at the same time. */
async function groupsOf(requests: readonly Asking[]): Promise<number> {
  let groups = 0;
  const begin = async () => {
    groups++;
    throw NO_STORE;
  };
  const deps = {
    clock,
    partners: async () => [],
    schedule: { wake: async () => {} },
    writerPool: {
      isBlocked: () => false,
      group: begin,
      transaction: begin,
    },
  };
  const join = createTaking(Object.assign(Object.create(null), deps));
  await Promise.allSettled(requests.map((one) => join(one)));
  return groups;
}

describe("a group", () => {
  const half = CHARS_PER_GROUP / 2;
  const text = (chars: number) => {
    const contents: string[] = [];
    for (let left = chars; left > 0; left -= 20_000)
      contents.push("x".repeat(Math.min(left, 20_000)));
    return asking(contents);
  };

  test.each([
    [half, half, 1],
    [half, half + 1, 2],
  ])("of texts of %d and %d characters takes %d transactions", async (a, b, groups) => {
    expect(await groupsOf([text(a), text(b)])).toBe(groups);
  });

  test("takes a request alone whose texts are longer than that", async () => {
    expect(await groupsOf([text(2 * CHARS_PER_GROUP)])).toBe(1);
  });

  test.each([
    [0, 1],
    [1, 2],
  ])("of its most events and %d more takes %d transactions", async (more, groups) => {
    const requests = Array.from({ length: EVENTS_PER_GROUP / 32 }, () =>
      asking(Array.from({ length: 32 }, () => "short")),
    );
    if (more > 0) requests.push(asking(["short"]));
    expect(await groupsOf(requests)).toBe(groups);
  });
});
