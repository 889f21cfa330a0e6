import { expect, spyOn, test } from "bun:test";

import { decodeTime, isValid } from "ulid";

import { createUlids } from "../../../../dispatcher/store/ulids.ts";

test("are ULIDs of their instant", () => {
  const newUlid = createUlids();
  for (const atMs of [1, AT, AT + 1]) {
    const id = newUlid(atMs);
    expect(isValid(id)).toBe(true);
    expect(decodeTime(id)).toBe(atMs);
  }
});

test("rise within an instant, from one to the next, and when the clock runs backwards", () => {
  const newUlid = createUlids();
  const ids = [AT, AT, AT, AT + 1, AT + 1, AT - 5_000, AT + 1, AT + 2].map(newUlid);
  expect(ids).toEqual([...new Set(ids)].toSorted());
});

test("are of their own instant again after a clock that had jumped ahead for days", () => {
  const newUlid = createUlids();
  const jumped = newUlid(AT + 10 * 86_400_000);
  expect([AT, AT + 1, AT - 15_000].map(newUlid).map(decodeTime)).toEqual([AT, AT + 1, AT + 1]);
  expect(decodeTime(jumped)).toBe(AT + 10 * 86_400_000);
});

test("increase beyond the range of their last two characters", () => {
  const newUlid = createUlids();
  const ids = Array.from({ length: 3 * 32 ** 2 }, () => newUlid(AT));
  expect(ids).toEqual([...new Set(ids)].toSorted());
  expect(new Set(ids.map((id) => id.slice(-2))).size).toBe(32 ** 2);
  expect(new Set(ids.map((id) => id.slice(0, -2))).size).toBeLessThanOrEqual(4);
});

test("are drawn anew by every process and for every instant", () => {
  const random = (id: string) => id.slice(10);
  const [one, other] = [createUlids(), createUlids()];
  const drawn = [one(AT), one(AT + 1), other(AT), other(AT + 1)].map(random);
  expect(new Set(drawn.map((id) => id.slice(0, 8))).size).toBe(4);
  expect(new Set(drawn.map((id) => id.slice(8))).size).toBe(4);
});

test("rise within an instant whatever was drawn for its first one", () => {
  const drawing = spyOn(crypto, "getRandomValues").mockImplementation((array) => {
    if (array instanceof Uint32Array) array.fill(0xffff_ffff);
    return array;
  });
  try {
    const newUlid = createUlids();
    const ids = Array.from({ length: 100 }, () => newUlid(AT));
    expect(ids).toEqual([...new Set(ids)].toSorted());
    expect(ids.filter((id) => !isValid(id))).toEqual([]);
  } finally {
    drawing.mockRestore();
  }
});

const AT = Date.parse("2026-06-01T12:00:00.000Z");
