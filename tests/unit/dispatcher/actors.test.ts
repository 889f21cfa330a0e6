import { beforeEach, describe, expect, test } from "bun:test";

import { Lane } from "../../../dispatcher/actor/lane.ts";
import { type Actor, FIRST_LOAD, MAX_QUEUED } from "../../../dispatcher/actor/state.ts";
import { Actors, Turns } from "../../../dispatcher/actors.ts";
import { LIMITS } from "../../../dispatcher/delivery/limits.ts";
import { entry } from "../../support/actor.ts";
import { createFakeClock, type FakeClock } from "../../support/clock.ts";

describe("subscriptions beyond the bound", () => {
  test("wait by name, those of a sweep behind the others, and come in turn when one is dropped", () => {
    const a = admit("A");
    admit("B");
    expect(actors.wake(wake("swept"), true)).toBeUndefined();
    for (const id of ["C", "D", "C"]) expect(actors.wake(wake(id), false)).toBeUndefined();
    expect([actors.size, actors.waiting]).toEqual([2, 3]);
    expect(actors.next()).toBeUndefined();
    actors.drop(a);
    const ids: string[] = [];
    for (let one = actors.next(); one !== undefined; one = actors.next())
      ids.push(one.subscriptionId);
    expect(ids).toEqual(["C", "D", "swept"]);
  });

  test("wait by name, too, while hundreds wait for their first load", () => {
    actors = new Actors(clock, LIMITS);
    let admitted: Actor[] = [];
    for (let n = 0; n < 600; n++) {
      const actor = actors.wake(wake(`S${n}`), true);
      if (actor !== undefined) admitted = [...admitted, actor];
    }
    expect([actors.size, actors.waiting]).toEqual([256, 344]);
    const [first, second] = admitted;
    const postponed = { kind: "postponed", lane: "main", until: new Date() } as const;
    expect(first && actors.endsTurn(first, postponed)).toBe(false);
    if (first === undefined || second === undefined) throw new Error("Nobody was let in.");
    actors.loaded(first);
    expect(actors.next()?.subscriptionId).toBe("S256");
    expect(admit("S256").id).toBe("S256");
    expect(actors.next()).toBeUndefined();
    actors.drop(second);
    expect(actors.next()?.subscriptionId).toBe("S257");
  });

  test("end the turn of an actor after a second, and at once if it only waits", () => {
    const a = admit("A");
    admit("B");
    clock.advance(5_000);
    expect(actors.endsTurn(a, answered)).toBe(false);
    actors.wake(wake("C"), true);
    expect(actors.endsTurn(a, answered)).toBe(true);
    expect(actors.endsTurn(a, { kind: "woken" })).toBe(false);
    actors.drop(a);
    const c = admit("C");
    actors.wake(wake("D"), true);
    expect(actors.endsTurn(c, answered)).toBe(false);
    expect(actors.endsTurn(c, { kind: "postponed", lane: "main", until: new Date() })).toBe(true);
  });

  test("let an actor come again behind them", () => {
    const a = admit("A");
    admit("B");
    actors.wake(wake("C"), true);
    actors.returnLater(a);
    actors.drop(a);
    const [first, second] = [actors.next(), admit("X") && actors.next()];
    expect([first?.subscriptionId, second]).toEqual(["C", undefined]);
  });
});

describe("a saturated host group", () => {
  test("is unparked in the order of arrival, also if a member is parked again", () => {
    for (const id of ["A", "B", "A"]) {
      const actor = admit(id);
      actors.returnLater(actor, "host");
      actors.drop(actor);
    }
    expect(actors.parkedIn(wake("A"))).toBe("host");
    expect(actors.unpark("host", 5).map((one) => one.subscriptionId)).toEqual(["A", "B"]);
    expect([actors.parkedIn(wake("A")), actors.waiting]).toEqual([undefined, 0]);
  });
});

test("the actors share the memory for entries alike, and each may have a few", () => {
  expect(actors.share).toBe(MAX_QUEUED);
  admit("A");
  admit("B");
  expect(actors.share).toBe(50);
  const many = new Actors(clock, { ...LIMITS, actors: 100, entries: 100 });
  for (let n = 0; n < 100; n++) many.wake(wake(`S${n}`), false);
  expect(many.share).toBe(FIRST_LOAD);
});

test("actors with more entries than there is room for read them in turn once there is room", () => {
  actors = new Actors(clock, { ...LIMITS, bytes: 100 });
  const [a, b, c] = [admit("A"), admit("B"), admit("C")];
  const lane = new Lane("main", entry(1));
  lane.push(entry(1, { bytes: 100 }));
  a.lanes.set("main", lane);
  for (const actor of [a, b, c]) {
    actor.more = true;
    actors.weigh(actor);
  }
  expect(actors.takeForRoom(2)).toEqual([]);
  lane.clear();
  actors.weigh(a);
  expect([actors.takeForRoom(2), actors.takeForRoom(2), actors.takeForRoom(2)]).toEqual([
    [a, b],
    [c],
    [],
  ]);
});

const wakeIn = (subscriptionId: string, shard: number) => ({ subscriptionId, shard });

function taken(turns: Turns): string[] {
  const names: string[] = [];
  for (let one = turns.take(); one !== undefined; one = turns.take())
    names.push(one.subscriptionId);
  return names;
}

test("shards take turns, and within a shard it is first come, first served", () => {
  const turns = new Turns();
  for (const name of ["a", "b", "c"]) turns.add(wakeIn(name, 1));
  turns.add(wakeIn("x", 2));
  turns.add(wakeIn("y", 2));
  expect(turns.size).toBe(5);
  expect(taken(turns)).toEqual(["a", "x", "b", "y", "c"]);
  expect(turns.size).toBe(0);
});

test("a subscription that waits already keeps its position, and a deleted one does not come", () => {
  const turns = new Turns();
  for (const name of ["a", "b", "a", "c"]) turns.add(wakeIn(name, 1));
  turns.delete(wakeIn("b", 1));
  turns.delete(wakeIn("b", 1));
  expect(turns.size).toBe(2);
  expect(taken(turns)).toEqual(["a", "c"]);
});

test("a taken subscription may return, behind the others of its shard", () => {
  const turns = new Turns();
  turns.add(wakeIn("a", 1));
  turns.add(wakeIn("b", 1));
  const first = turns.take();
  if (first !== undefined) turns.add(first);
  expect(taken(turns)).toEqual(["b", "a"]);
});

const wake = (subscriptionId: string) => ({ subscriptionId, shard: 1 });

const answered = { kind: "answered", lane: "main", decision: { kind: "delivered" } } as const;

let clock: FakeClock;

let actors: Actors;

beforeEach(() => {
  clock = createFakeClock();
  actors = new Actors(clock, { ...LIMITS, actors: 2, entries: 100 });
});

function admit(id: string): Actor {
  const actor = actors.wake(wake(id), false);
  if (actor === undefined) throw new Error(`${id} has to wait`);
  return actor;
}
