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
    const token = await tokenOf(email);
    expect(await expectLinearCosts(token)).toBeGreaterThan(500);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await api.call("GET", `${api.root}/api/v1/verify-token`, { headers })).status).toBe(
      200,
    );
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

/** Routes that revoke the caller's token. */
const ENDS_THE_TOKEN = /^(GET \/api\/v1\/(logout|sso\/revoking-token))|DELETE .*\/sessions/;

afterAll(stop);

async function tokenOf(email: string): Promise<string> {
  return String((await api.login(email, PASSWORD)).body["token"]);
}

/**
 * Measures the average CPU time of the event loop for one request of `bytes`. It averages over several requests, because
 * the system reports the time of a running thread late.
 */
async function costOf(worst: WorstRequest, bytes: number): Promise<number> {
  const before = mainThreadMs(api.pid);
  for (let i = 0; i < TRIES; i++) {
    const { path, init } = worst.make(bytes);
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
async function untilLinear(worst: WorstRequest): Promise<Costs> {
  let costs = { small: 0, large: Number.POSITIVE_INFINITY };
  for (let i = 0; i < ROUNDS && !isLinear(costs); i++)
    costs = { small: await costOf(worst, SMALL), large: await costOf(worst, LARGE) };
  return costs;
}

async function expectLinearCosts(token?: string): Promise<number> {
  const all = worstRequests(description, token).filter(
    ({ route }) => token === undefined || !ENDS_THE_TOKEN.test(route),
  );
  for (const worst of all) {
    const costs = await untilLinear(worst);
    expect([worst.route, worst.shape, isLinear(costs) || costs]).toEqual([
      worst.route,
      worst.shape,
      true,
    ]);
  }
  return all.length;
}
