import { beforeEach, expect, test } from "bun:test";

import {
  MAX_REQUESTS,
  MAX_REQUESTS_PER_HOST,
  Slots,
} from "../../../../dispatcher/delivery/slots.ts";

let slots: Slots;
let started: string[];
let cancelled: string[];
beforeEach(() => {
  cancelled = [];
  slots = new Slots();
  started = [];
  slots.resume();
});

const acquire = (host: string, count = 1, shard = 0) => {
  const start = () => void started.push(host);
  const cancel = () => void cancelled.push(host);
  for (let n = 0; n < count; n++) slots.acquire(host, { shard, start, cancel });
};

test(`starts ${MAX_REQUESTS_PER_HOST} requests to a host at once and the next one when one has ended`, () => {
  acquire("a", MAX_REQUESTS_PER_HOST + 1);
  expect(started).toHaveLength(MAX_REQUESTS_PER_HOST);
  slots.release("a");
  expect(started).toHaveLength(MAX_REQUESTS_PER_HOST + 1);
});

test("a full host does not hold up another one", () => {
  acquire("a", MAX_REQUESTS_PER_HOST + 10);
  acquire("b");
  expect(started.at(-1)).toBe("b");
});

test(`starts ${MAX_REQUESTS} requests at once over all hosts, and lets the waiting hosts take turns`, () => {
  for (let host = 0; host < MAX_REQUESTS; host++) acquire(`h${host}`);
  acquire("x", 3);
  acquire("y", 3);
  expect(started).toHaveLength(MAX_REQUESTS);
  for (let host = 0; host < 4; host++) slots.release(`h${host}`);
  expect(started.slice(MAX_REQUESTS)).toEqual(["x", "y", "x", "y"]);
});

test("starts nothing while it is paused", () => {
  slots.pause();
  acquire("a", 2);
  expect(started).toEqual([]);
  slots.resume();
  expect(started).toEqual(["a", "a"]);
});

test("forgets everything when it is cleared", () => {
  acquire("a", MAX_REQUESTS_PER_HOST + 5);
  slots.clear();
  started = [];
  acquire("a", MAX_REQUESTS_PER_HOST);
  expect(started).toHaveLength(MAX_REQUESTS_PER_HOST);
});

test("what waits for a shard can be withdrawn, and the others keep their turns", () => {
  acquire("a", MAX_REQUESTS_PER_HOST);
  acquire("a", 1, 7);
  acquire("a", 1, 8);
  slots.withdraw(7);
  expect(cancelled).toEqual(["a"]);
  slots.release("a");
  slots.release("a");
  expect(started).toHaveLength(MAX_REQUESTS_PER_HOST + 1);
});
