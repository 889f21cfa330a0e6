import { afterAll, beforeAll } from "bun:test";

/** The fixtures that are running, in the order of their start. */
const running: object[] = [];

/**
 * Starts something before the tests of the file, and ends it after them and after the hooks of the file by its method
 * `stop`, `drop` or `close`. Fixtures start in the order of their calls and end in the opposite order. The
 * returned object stands for the started one, and can be used in tests, in hooks and in later fixtures. Nothing is started
 * if all tests that need the fixture are skipped, for which `isNeeded` is false.
 */
export function fixture<T extends object>(start: () => T | Promise<T>, isNeeded = true): T {
  let started: T | undefined;
  beforeAll(async () => {
    if (!isNeeded) return;
    started = await start();
    running.push(started);
  });
  // `afterAll` hooks run in the order of their calls, so this call follows those of the file.
  queueMicrotask(() => afterAll(() => end(running.pop())));
  return lazy(() => {
    if (started === undefined) throw new Error("The fixture is used before its start.");
    return started;
  });
}

/** Returns an object that stands for the one that `read` returns whenever it is used. */
export function lazy<T extends object>(read: () => T): T {
  // The target is empty: every operation is forwarded to the object that `read` returns.
  return new Proxy({} as T, {
    get(_, key) {
      const object = read();
      const value: unknown = Reflect.get(object, key, object);
      // The function of the driver has others as properties, such as `unsafe`.
      return typeof value === "function" ? Object.assign(value.bind(object), value) : value;
    },
    set: (_, key, value) => Reflect.set(read(), key, value),
    has: (_, key) => Reflect.has(read(), key),
    ownKeys: () => Reflect.ownKeys(read()),
    getPrototypeOf: () => Reflect.getPrototypeOf(read()),
    getOwnPropertyDescriptor(_, key) {
      const descriptor = Reflect.getOwnPropertyDescriptor(read(), key);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}

async function end(object: object | undefined): Promise<void> {
  for (const name of ["stop", "drop", "close"] as const) {
    const method: unknown = object && Reflect.get(object, name);
    if (typeof method !== "function") continue;
    await method.call(object);
    return;
  }
}
