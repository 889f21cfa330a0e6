import { describe, expect, test } from "bun:test";

import { Cached } from "../../../src/sso/identity-providers.ts";
import { createFakeClock } from "../../support/clock.ts";

describe("a cached document", () => {
  test("is loaded once for concurrent callers, and again after ten minutes", async () => {
    const { clock, cached } = setUp();
    expect(await Promise.all([cached.get(), cached.get(), cached.get()])).toEqual([1, 1, 1]);
    clock.advance(599_999);
    expect(await cached.get()).toBe(1);
    clock.advance(1);
    expect(await cached.get()).toBe(2);
  });

  test("that failed to load is not requested again for five seconds", async () => {
    const { clock, loads, cached } = setUp();
    loads.fails = true;
    for (let i = 0; i < 3; i++) await expect(cached.get()).rejects.toThrow("failure 1");
    loads.fails = false;
    clock.advance(4_999);
    await expect(cached.get()).rejects.toThrow("failure 1");
    clock.advance(1);
    expect(await cached.get()).toBe(2);
  });

  test("is renewed at most once a minute", async () => {
    const { clock, cached } = setUp();
    expect(await cached.get()).toBe(1);
    expect(await cached.renew()).toBe(2);
    clock.advance(59_999);
    expect(await cached.renew()).toBe(2);
    clock.advance(1);
    expect(await cached.renew()).toBe(3);
  });

  test("stays available when a renewal fails", async () => {
    const { loads, cached } = setUp();
    await cached.get();
    loads.fails = true;
    await expect(cached.renew()).rejects.toThrow("failure 2");
    expect(await cached.get()).toBe(1);
  });
});

function setUp() {
  const clock = createFakeClock();
  const loads = { count: 0, fails: false };
  const cached = new Cached(clock, async () => {
    loads.count += 1;
    await Promise.resolve();
    if (loads.fails) throw new Error(`failure ${loads.count}`);
    return loads.count;
  });
  return { clock, loads, cached };
}
