import { expect, test } from "bun:test";

import { BODY_LIMIT, LARGE_BODY, readBody } from "../../../src/http/body.ts";

/** In how many different turns of the event loop twenty bodies were read that came at once. */
async function turnsOf(bytes: number): Promise<number> {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const read = Array.from({ length: 20 }, async () => {
    const body = "x".repeat(bytes);
    const request = new Request("http://api.test/", { method: "POST", body });
    expect(await readBody(request, BODY_LIMIT)).toHaveLength(bytes);
    return turn;
  });
  const turns = await Promise.all(read);
  isOver = true;
  return new Set(turns).size;
}

test("large bodies are read one a turn, so that others are answered between them", async () => {
  expect(await turnsOf(LARGE_BODY)).toBe(20);
  expect(await turnsOf(LARGE_BODY - 1)).toBeLessThan(20);
});
