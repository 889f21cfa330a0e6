import { expect, test } from "bun:test";

import type { Loaded, LoadRequest } from "../../../../dispatcher/actor/event.ts";
import { Loader } from "../../../../dispatcher/store/loader.ts";
import type { DispatchStore } from "../../../../dispatcher/store/store.ts";
import { entry } from "../../../support/actor.ts";
import { createFakeClock } from "../../../support/clock.ts";

test("the settings for a waiting send are read ahead of the loads, in a separate query", async () => {
  const asked: string[][] = [];
  const loader = loaderWith((ids) => void asked.push([...ids]));
  const taken = Array.from({ length: 300 }, (_, n) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    loader.load(ask(`L${n}`), () => resolve());
    return promise;
  });
  await new Promise<void>((resolve) => loader.load(ask("U"), () => resolve(), { turn: "first" }));
  await Promise.all(taken);
  expect(asked[0]).toEqual(["U"]);
  expect(asked.slice(1).map((ids) => ids.length)).toEqual([32, 128, 128, 12]);
});

test("a query has 32 to 128 subscriptions, fewer after one that brought large entries", async () => {
  const asked: number[] = [];
  let bytes = 2 ** 20;
  const load: DispatchStore["load"] = async (requests) => {
    asked.push(requests.length);
    return requests.map((request) => loadedOf(request, bytes));
  };
  const loader = new Loader({ store: { ...UNUSED, load }, clock: createFakeClock(), log });
  const loadAll = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        loader.load(ask(`L${n}`), () => resolve());
        return promise;
      }),
    );
  await loadAll(128);
  expect(asked.splice(0)).toEqual([32, 32, 32, 32]);
  bytes = 2 ** 18;
  await loadAll(512);
  expect(asked.splice(0)).toEqual([32, 32, 128, 128, 128, 64]);
  bytes = 2 ** 20;
  await loadAll(256);
  expect(asked.splice(0)).toEqual([128, 128]);
  await loadAll(64);
  expect(asked.splice(0)).toEqual([32, 32]);
});

test("requests bring no more bytes than are left, and without room settings and tests only", async () => {
  const limits: number[] = [];
  let left: number | undefined;
  const load: DispatchStore["load"] = async (requests) => {
    limits.push(...requests.flatMap(({ limit, maxBytes }) => [limit, maxBytes]));
    return requests.map((request): Loaded => ({ request, found: undefined }));
  };
  const deps = { store: { ...UNUSED, load }, clock: createFakeClock(), log };
  const loader = new Loader(deps, () => left);
  const request = { ...ask("A"), limit: 64, maxBytes: 262_144 };
  for (left of [300_000, 100_000, 0, undefined]) {
    await new Promise<void>((resolve) => loader.load(request, () => resolve()));
  }
  expect(limits).toEqual([64, 262_144, 64, 100_000, 64, 16_384, 0, 0]);
});

/** Makes a loader on a store in which the windows of these subscriptions are full until this many are passed. */
function loaderWithFull(left: Record<string, number>) {
  const passed: string[] = [];
  const store: LoadStore = {
    ...UNUSED,
    passWindow: async (id) => {
      passed.push(id);
      left[id] = (left[id] ?? 0) - 1;
    },
    load: async (requests) =>
      requests.map((request) => ({
        request,
        found: undefined,
        isFull: (left[request.id] ?? 0) > 0,
      })),
  };
  return { loader: new Loader({ store, clock: createFakeClock(), log }), passed };
}

test("requests whose windows have to be passed delay no other, and take turns", async () => {
  const { loader, passed } = loaderWithFull({ A: 2, B: 1 });
  const taken: [id: string, passed: number][] = [];
  await new Promise<void>((resolve) => {
    for (const id of ["A", "B", "C"])
      loader.load(ask(id), () => {
        taken.push([id, passed.length]);
        if (taken.length === 3) resolve();
      });
  });
  expect(taken).toEqual([
    ["C", 0],
    ["B", 2],
    ["A", 3],
  ]);
  expect(passed).toEqual(["A", "B", "A"]);
});

test("a load passes at most 32 windows, and none after its request is forgotten", async () => {
  const { loader, passed } = loaderWithFull({ A: 100, B: 100 });
  await new Promise<void>((resolve) => loader.load(ask("A"), () => resolve()));
  expect(passed.length).toBe(32);
  loader.load(ask("B"), () => {});
  while (!passed.includes("B")) await Promise.resolve();
  loader.clear();
  for (let n = 0; n < 100; n++) await Promise.resolve();
  expect(passed.length).toBe(33);
});

test("rows that loads walk past are postponed beside the loads, once at a time, also after a failure", async () => {
  const begun: (() => void)[] = [];
  const store = {
    ...UNUSED,
    load: async (requests: readonly LoadRequest[]) =>
      requests.map((request) => ({ request, found: undefined, isBehind: true })),
    postpone: () => {
      const { promise, reject } = Promise.withResolvers<void>();
      begun.push(() => reject(new Error("cancelled")));
      return promise;
    },
  };
  const loader = new Loader({ store, clock: createFakeClock(), log });
  let answered = 0;
  const loadOnce = async () => {
    loader.load(ask("A"), () => (answered += 1));
    await Bun.sleep(0);
  };
  await loadOnce();
  await loadOnce();
  expect([answered, begun.length]).toEqual([2, 1]);
  begun[0]?.();
  await Bun.sleep(0);
  await loadOnce();
  expect([answered, begun.length]).toEqual([3, 2]);
});

test("a request that is wanted no more is answered with nothing, at once and also out of quarantine", async () => {
  const clock = createFakeClock();
  const asked: string[] = [];
  const store: LoadStore = {
    ...UNUSED,
    load: async (requests) => {
      asked.push(...requests.map(({ id }) => id));
      throw new Error("damaged");
    },
  };
  const stuck: unknown[] = [];
  const error = (event: string, fields = {}) =>
    void stuck.push([event, Reflect.get(fields, "subscription_id")]);
  const loader = new Loader({ store, clock, log: { ...log, error } });
  const taken: [string, Loaded["found"]][] = [];
  let isWanted = true;
  const load = (id: string) =>
    loader.load(ask(id), ({ found }) => void taken.push([id, found]), { isWanted: () => isWanted });
  load("A");
  // The next try is seconds away after five failures.
  for (let n = 0; n < 40; n++) {
    await Bun.sleep(0);
    clock.advance(100);
  }
  const tries = asked.length;
  expect([taken, stuck[0]]).toEqual([[], ["load.stuck", "A"]]);
  isWanted = false;
  load("B");
  await Bun.sleep(0);
  expect(taken).toEqual([["B", undefined]]);
  loader.release();
  clock.advance(100);
  await Bun.sleep(0);
  expect(taken).toEqual([
    ["B", undefined],
    ["A", undefined],
  ]);
  expect(asked).toHaveLength(tries);
});

test("an answer that comes after the loader was cleared is given to no actor", async () => {
  const answered = Promise.withResolvers<void>();
  const store: LoadStore = {
    ...UNUSED,
    load: async (requests) => {
      await answered.promise;
      return requests.map((request): Loaded => ({ request, found: undefined }));
    },
  };
  const loader = new Loader({ store, clock: createFakeClock(), log });
  const taken: string[] = [];
  loader.load(ask("A"), () => taken.push("A"));
  await Bun.sleep(0);
  loader.clear();
  answered.resolve();
  await Bun.sleep(0);
  loader.load(ask("B"), () => taken.push("B"));
  await Bun.sleep(0);
  expect(taken).toEqual(["B"]);
});

const log = { debug() {}, info() {}, warn() {}, error() {} };

const ask = (id: string): LoadRequest => ({
  id,
  shard: 1,
  generation: 0,
  after: 0,
  limit: 64,
  maxBytes: 1,
  exceptReviews: [],
});

type LoadStore = Pick<DispatchStore, "load" | "passWindow" | "postpone" | "hold">;

const UNUSED = { hold: async () => {}, postpone: async () => {}, passWindow: async () => {} };

/** The answer of a load that brings one entry of this size. */
function loadedOf(request: LoadRequest, bytes: number): Loaded {
  const found = { entries: [entry(1, { bytes })], tests: [] };
  return { request, found } as unknown as Loaded;
}

/** Makes a loader on a store that calls `answer` for each load, which fails if `answer` throws. */
function loaderWith(answer: (ids: readonly string[]) => void) {
  const store = {
    load: async (requests: readonly LoadRequest[]) => {
      answer(requests.map(({ id }) => id));
      return requests.map((request): Loaded => ({ request, found: undefined }));
    },
  } as unknown as DispatchStore;
  // No time passes between two tries.
  return new Loader({ store, clock: { ...createFakeClock(), sleep: async () => {} }, log });
}
