import { beforeEach, expect, test } from "bun:test";

import { complete } from "../../../dispatcher/actor/inheritance.ts";
import { Actor } from "../../../dispatcher/actor/state.ts";
import { Inheritances } from "../../../dispatcher/inheritances.ts";

const takeover = new Date("2026-05-01T12:00:00Z");
const wake = (subscriptionId: string, shard = 1) => ({ subscriptionId, shard });

let inheritances: Inheritances;
beforeEach(() => {
  inheritances = new Inheritances();
  inheritances.begin([1], [1], takeover);
});

test("what is woken before a shard is swept inherits, whenever its actor comes", () => {
  inheritances.note(wake("before"));
  inheritances.swept([1]);
  inheritances.note(wake("after"));
  const own = inheritances.of(wake("before"));
  expect(own?.at).toEqual(takeover);
  expect(inheritances.of(wake("before"))).toBe(own);
  expect(inheritances.of(wake("after"))).toBeUndefined();
});

test("what is recorded after its subscription was done inherits nothing, even before the sweep", () => {
  inheritances.note(wake("a"));
  const first = new Actor("a", 1, inheritances.of(wake("a")));
  if (first.inheritance) complete(first.inheritance);
  inheritances.dropped(first);
  inheritances.note(wake("a"));
  expect(inheritances.of(wake("a"))).toMatchObject({ isComplete: true, marked: new Set() });
  inheritances.swept([1]);
  expect(inheritances.isOpen(1)).toBe(false);
});

test("nothing of a shard that no dead process held inherits", () => {
  inheritances.note(wake("elsewhere", 2));
  expect(inheritances.of(wake("elsewhere", 2))).toBeUndefined();
});

test("a shard is open until all that was noted has been looked at and repeated", () => {
  inheritances.note(wake("a"));
  inheritances.swept([1]);
  expect(inheritances.isOpen(1)).toBe(true);
  const actor = new Actor("a", 1, inheritances.of(wake("a")));
  actor.inheritance?.marked.add(1);
  inheritances.dropped(actor);
  expect(inheritances.isOpen(1)).toBe(true);
  if (actor.inheritance) complete(actor.inheritance);
  actor.inheritance?.marked.delete(1);
  expect(inheritances.isOpen(1)).toBe(false);
});
