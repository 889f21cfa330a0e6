import { expect, test } from "bun:test";

import { keepSession } from "../../../../dispatcher/http/connection.ts";
import { AddressMemory } from "../../../../dispatcher/http/pool.ts";

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

test("an address that failed is tried last for a minute, and for its own origin only", () => {
  let nowMs = 0;
  const memory = new AddressMemory(() => nowMs);
  const three = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
  memory.blame("https://a.test", "10.0.0.1");
  expect(memory.inOrder("https://a.test", three)).toEqual(["10.0.0.2", "10.0.0.3", "10.0.0.1"]);
  expect(memory.inOrder("https://b.test", three)).toEqual(three);
  for (const address of three) memory.blame("https://a.test", address);
  expect(memory.inOrder("https://a.test", three)).toEqual(three);
  nowMs = 60_000;
  expect(memory.inOrder("https://a.test", three)).toEqual(three);
});
