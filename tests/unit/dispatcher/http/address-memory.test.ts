import { expect, test } from "bun:test";

import { AddressMemory } from "../../../../dispatcher/http/pool.ts";

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
