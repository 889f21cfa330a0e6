import { expect, test } from "bun:test";

import { SessionCache } from "../../../../dispatcher/http/connection.ts";

test("keeps the last session of each origin, and past its bound forgets those renewed the longest ago", () => {
  const cache = new SessionCache(100);
  for (let nth = 0; nth < 10; nth++) cache.set(`o${nth}`, Buffer.alloc(10, 1));
  cache.set("o0", Buffer.alloc(10, 2));
  expect(cache.get("o0")).toEqual(Buffer.alloc(10, 2));
  expect(cache.get("o1")).toEqual(Buffer.alloc(10, 1));
  cache.set("one more", Buffer.alloc(15, 3));
  for (const origin of ["o1", "o2"]) expect(cache.get(origin)).toBeUndefined();
  for (const origin of ["o0", "o3", "one more"]) expect(cache.get(origin)).toBeDefined();
});
