import { describe, expect, test } from "bun:test";

import { readinessOf, showReadiness } from "../../../src/lib/readiness.ts";
import { createFakeClock } from "../../support/clock.ts";

describe("the response of /readyz", () => {
  const ok = { postgres: "ok", master_key: "ok", redis: "ok" };
  test.each([
    ["nothing fails", [], 200, "ok"],
    ["Redis is away", ["redis"], 200, "degraded"],
    ["Postgres is away", ["postgres"], 503, "unavailable"],
    ["a master key is missing", ["master_key"], 503, "unavailable"],
    ["Postgres and Redis are away", ["postgres", "redis"], 503, "unavailable"],
  ])("when %s: the failed checks %p, and %i %s", async (_, failed, status, told) => {
    const changed = Object.fromEntries(failed.map((name) => [name, fails]));
    const shown = showReadiness(await setUp(changed).answer);
    const checks = { ...ok, ...Object.fromEntries(failed.map((name) => [name, "failed"])) };
    expect(shown).toMatchObject({ status, body: { status: told, checks } });
  });

  test("when the process drains: 503, and no check runs", async () => {
    let ran = 0;
    const counts = async () => void ran++;
    const { answer } = setUp({ postgres: counts, redis: counts }, true);
    expect(showReadiness(await answer)).toEqual({
      status: 503,
      body: { status: "draining", checks: {}, clock_skew_ms: undefined },
    });
    expect(ran).toBe(0);
  });
});

describe("a check that never answers has failed", () => {
  const never = () => new Promise<never>(() => {});
  const isSettled = async (promise: Promise<unknown>) => {
    let settled = false;
    void promise.then(() => (settled = true));
    await Bun.sleep(0);
    return settled;
  };

  test("after half a second for Redis, so that the answer comes within the deadline of a proxy", async () => {
    const { answer, clock } = setUp({ redis: never });
    clock.advance(499);
    expect(await isSettled(answer)).toBe(false);
    clock.advance(1);
    expect((await answer).status).toBe("degraded");
  });

  test("after two seconds for Postgres", async () => {
    const { answer, clock } = setUp({ postgres: never });
    clock.advance(1_999);
    expect(await isSettled(answer)).toBe(false);
    clock.advance(1);
    expect((await answer).status).toBe("unavailable");
  });
});

test("a failed check is logged with its name and the reason", async () => {
  const { answer, warned } = setUp({ redis: fails });
  await answer;
  expect(warned).toEqual([expect.objectContaining({ event: "readiness.failed", check: "redis" })]);
  expect(JSON.stringify(warned)).toContain("away");
});

const passes = () => Promise.resolve();

const fails = () => Promise.reject(new Error("away"));

function setUp(changed: Record<string, () => Promise<unknown>>, isDraining = false) {
  const clock = createFakeClock();
  const warned: object[] = [];
  const note = (event: string, fields: object = {}) => void warned.push({ event, ...fields });
  const log = { debug: note, info: note, warn: note, error: note };
  const checks = { postgres: passes, master_key: passes, redis: passes, ...changed };
  const answer = readinessOf({ clock, log, checks, isDraining: () => isDraining });
  return { clock, warned, answer };
}
