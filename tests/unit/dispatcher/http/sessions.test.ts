import { expect, test } from "bun:test";

import { keepSession } from "../../../../dispatcher/http/connection.ts";

test("the last session of each origin is kept, and past the bound those renewed the longest ago are forgotten", () => {
  const sessions = new Map<string, Buffer>();
  for (let nth = 0; nth < 4_096; nth++) keepSession(sessions, `o${nth}`, Buffer.alloc(10, 1));
  keepSession(sessions, "o0", Buffer.alloc(10, 2));
  keepSession(sessions, "one more", Buffer.alloc(10, 3));
  keepSession(sessions, "too long", Buffer.alloc(8_193));
  expect(sessions.get("o0")).toEqual(Buffer.alloc(10, 2));
  expect(["o1", "o2", "one more", "too long"].map((origin) => sessions.has(origin))).toEqual([
    false,
    true,
    true,
    false,
  ]);
});
