import { afterAll, expect, test } from "bun:test";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { PASSWORD } from "../support/api.ts";
import { mainThreadMs } from "../hostile/thread-time.ts";
import { worstRequests, type WorstRequest } from "../hostile/worst-requests.ts";

/*
 * Every route of the OpenAPI document gets the worst inputs for its readers, in 4 KiB and in 64 KiB. The CPU time of the
 * event loop must grow about as much as the input, 16 times; quadratic work would grow 256 times.
 */

const { api, tenants, stop } = await startAttackedApi();

test("a stranger's worst request to any route costs in proportion to its bytes", async () => {
  expect(await expectLinearCosts()).toBeGreaterThan(500);
  expect(api.said).not.toContain("request.failed");
});

test.each(["owner", "root"] as const)(
  "the worst request of a signed-in user to any route costs in proportion to its bytes: %s",
  async (who) => {
    const [partner] = tenants.partners;
    const { email } = who === "root" ? tenants.superAdmin : partner.owner;
    expect(await expectLinearCosts(email)).toBeGreaterThan(500);
    expect(api.said).not.toContain("request.failed");
  },
);

const description: unknown = (await api.call("GET", `${api.root}/openapi.json`)).body;

const SMALL = 4 * 1024;

const LARGE = 64 * 1024;

const TIMES = LARGE / SMALL;

const SLACK = 4;

const TRIES = 2;

const ROUNDS = 8;

afterAll(stop);

/** Signs the user in, unless the token of an earlier sign-in still works: some routes end the caller's sign-in. */
async function liveTokenOf(email: string, token?: string): Promise<string> {
  if (token !== undefined) {
    const headers = { Authorization: `Bearer ${token}` };
    const { status } = await api.call("GET", `${api.root}/api/v1/verify-token`, { headers });
    if (status === 200) return token;
  }
  const login = await api.login(email, PASSWORD);
  expect(login.status).toBe(200);
  return String(login.body["token"]);
}

/**
 * Measures the average CPU time of the event loop for one request of `bytes`. It averages over several requests, because
 * the system reports the time of a running thread late.
 */
async function costOf(worst: WorstRequest, bytes: number, token?: string): Promise<number> {
  const before = mainThreadMs(api.pid);
  for (let i = 0; i < TRIES; i++) {
    const { path, init } = worst.make(bytes, token);
    const response = await fetch(api.root + path, init);
    // An accepted event stream never ends.
    await (response.headers.get("content-type") === "text/event-stream"
      ? response.body?.cancel()
      : response.arrayBuffer());
    expect([worst.route, worst.shape, response.status < 500]).toEqual([
      worst.route,
      worst.shape,
      true,
    ]);
  }
  return (mainThreadMs(api.pid) - before) / TRIES;
}

interface Costs {
  readonly small: number;
  readonly large: number;
}

function isLinear({ small, large }: Costs): boolean {
  return large < small * TIMES * SLACK;
}

/** Repeats the measurement until it is linear: garbage collection may spoil some rounds, quadratic work fails all. */
async function untilLinear(worst: WorstRequest, token?: string): Promise<Costs> {
  let costs = { small: 0, large: Number.POSITIVE_INFINITY };
  for (let i = 0; i < ROUNDS && !isLinear(costs); i++)
    costs = {
      small: await costOf(worst, SMALL, token),
      large: await costOf(worst, LARGE, token),
    };
  return costs;
}

/** Measures all routes as this user, or as a stranger. Returns the number of requests that were measured. */
async function expectLinearCosts(email?: string): Promise<number> {
  const all = worstRequests(description);
  let token: string | undefined;
  for (const worst of all) {
    if (email !== undefined) token = await liveTokenOf(email, token);
    const costs = await untilLinear(worst, token);
    expect([worst.route, worst.shape, isLinear(costs) || costs]).toEqual([
      worst.route,
      worst.shape,
      true,
    ]);
  }
  return all.length;
}
