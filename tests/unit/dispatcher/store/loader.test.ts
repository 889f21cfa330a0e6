import { expect, test } from "bun:test";

import type { Loaded, LoadRequest } from "../../../../dispatcher/actor/event.ts";
import { Loader } from "../../../../dispatcher/store/loader.ts";
import type { DispatchStore } from "../../../../dispatcher/store/store.ts";
import { createFakeClock } from "../../../support/clock.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const ask = (id: string): LoadRequest => ({
  id,
  shard: 1,
  generation: 0,
  after: 0,
  limit: 64,
  exceptReviews: [],
  inherits: false,
});

/** A loader over a store whose loads are told to `answer`, which fails by throwing. */
function loaderWith(answer: (ids: readonly string[]) => void) {
  const store = {
    load: async (requests: readonly LoadRequest[]) => {
      answer(requests.map(({ id }) => id));
      return requests.map((request): Loaded => ({ request, found: undefined }));
    },
  } as unknown as DispatchStore;
  // Between two tries no time passes.
  return new Loader({ store, clock: { ...createFakeClock(), sleep: async () => {} }, log });
}

test("what cannot be read is asked for again until it can", async () => {
  const asked: string[][] = [];
  const loader = loaderWith((ids) => {
    asked.push([...ids]);
    if (asked.length < 3) throw new Error("refused");
  });
  await new Promise<void>((resolve) => loader.load(ask("A"), () => resolve()));
  expect(asked).toEqual([["A"], ["A"], ["A"]]);
});

test("what nobody wants any more is not asked for again", async () => {
  const asked: string[][] = [];
  const taken: string[] = [];
  await new Promise<void>((resolve) => {
    const loader = loaderWith((ids) => {
      asked.push([...ids]);
      if (!ids.includes("A")) return;
      loader.clear();
      loader.load(ask("B"), () => resolve());
      throw new Error("refused");
    });
    loader.load(ask("A"), () => taken.push("A"));
  });
  expect(asked).toEqual([["A"], ["B"]]);
  expect(taken).toEqual([]);
});

test("what a send waits for is read ahead of the loads, in a query of its own", async () => {
  const asked: string[][] = [];
  const loader = loaderWith((ids) => void asked.push([...ids]));
  const taken = Array.from({ length: 300 }, (_, n) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    loader.load(ask(`L${n}`), () => resolve());
    return promise;
  });
  await new Promise<void>((resolve) => loader.load(ask("U"), () => resolve(), "first"));
  await Promise.all(taken);
  expect(asked[0]).toEqual(["U"]);
  expect(asked.slice(1).map((ids) => ids.length)).toEqual([128, 128, 44]);
});
