import { expect, test } from "bun:test";

import { Turns } from "../../../dispatcher/actors.ts";

const wake = (subscriptionId: string, shard: number) => ({ subscriptionId, shard });

function taken(turns: Turns): string[] {
  const names: string[] = [];
  for (let one = turns.take(); one !== undefined; one = turns.take())
    names.push(one.subscriptionId);
  return names;
}

test("shards take turns, and within a shard it is first come, first served", () => {
  const turns = new Turns();
  for (const name of ["a", "b", "c"]) turns.add(wake(name, 1));
  turns.add(wake("x", 2));
  turns.add(wake("y", 2));
  expect(turns.size).toBe(5);
  expect(taken(turns)).toEqual(["a", "x", "b", "y", "c"]);
  expect(turns.size).toBe(0);
});

test("one that waits already keeps its place, and one that has gone does not come", () => {
  const turns = new Turns();
  for (const name of ["a", "b", "a", "c"]) turns.add(wake(name, 1));
  turns.delete(wake("b", 1));
  turns.delete(wake("b", 1));
  expect(turns.size).toBe(2);
  expect(taken(turns)).toEqual(["a", "c"]);
});

test("what is taken may come again, behind the others of its shard", () => {
  const turns = new Turns();
  turns.add(wake("a", 1));
  turns.add(wake("b", 1));
  const first = turns.take();
  if (first !== undefined) turns.add(first);
  expect(taken(turns)).toEqual(["b", "a"]);
});
