import { expect, test } from "bun:test";

import { MAX_SESSIONS, SessionCache } from "../../../../dispatcher/http/sessions.ts";

test(`keeps the last session of ${MAX_SESSIONS} origins, and forgets the one renewed the longest ago`, () => {
  const cache = new SessionCache();
  for (let nth = 0; nth < MAX_SESSIONS; nth++) cache.set(`o${nth}`, Buffer.from([1]));
  cache.set("o0", Buffer.from([2]));
  expect(cache.get("o0")).toEqual(Buffer.from([2]));
  expect(cache.get("o1")).toEqual(Buffer.from([1]));
  cache.set("one more", Buffer.from([3]));
  expect(cache.get("o1")).toBeUndefined();
  for (const origin of ["o0", "o2", "one more"]) expect(cache.get(origin)).toBeDefined();
});
