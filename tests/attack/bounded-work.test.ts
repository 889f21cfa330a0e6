import { afterAll, expect, test } from "bun:test";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { PASSWORD } from "../support/api.ts";
import { mainThreadMs } from "../hostile/thread-time.ts";
import { worstRequests, type WorstRequest } from "../hostile/worst-requests.ts";

/*
 * Every route of the description gets the worst shapes of what it reads, small and large. What the event loop spends on
 * the large one stays in proportion: of a square it would be 256 times as much.
 */

const SMALL = 4 * 1024;
const LARGE = 64 * 1024;
const TIMES = LARGE / SMALL;
const SLACK = 4;
const TRIES = 2;
const ROUNDS = 8;
/** These end the token that asks. */
const ENDS_THE_TOKEN = /^(GET \/api\/v1\/(logout|sso\/revoking-token))|DELETE .*\/sessions/;

const { api, tenants, stop } = await startAttackedApi();
const description: unknown = (await api.call("GET", `${api.root}/openapi.json`)).body;
afterAll(stop);

async function tokenOf(email: string): Promise<string> {
  return String((await api.login(email, PASSWORD)).body["token"]);
}

/** What one request of so many bytes cost the event loop on average: a thread that still runs tells its time late. */
async function costOf(worst: WorstRequest, bytes: number): Promise<number> {
  const before = mainThreadMs(api.pid);
  for (let i = 0; i < TRIES; i++) {
    const { path, init } = worst.make(bytes);
    const response = await fetch(api.root + path, init);
    // A stream that is let in has no end.
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

/** A collection of garbage falls into either of them, now and then; a square is one every time. */
async function untilLinear(worst: WorstRequest): Promise<Costs> {
  let costs = { small: 0, large: Number.POSITIVE_INFINITY };
  for (let i = 0; i < ROUNDS && !isLinear(costs); i++)
    costs = { small: await costOf(worst, SMALL), large: await costOf(worst, LARGE) };
  return costs;
}

async function holdToLinear(token?: string): Promise<number> {
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

test("a stranger's worst request to any route costs in proportion to its bytes", async () => {
  expect(await holdToLinear()).toBeGreaterThan(500);
  expect(api.said).not.toContain("request.failed");
});

test.each(["owner", "root"] as const)("so does that of who has signed in: %s", async (who) => {
  const [partner] = tenants.partners;
  const { email } = who === "root" ? tenants.superAdmin : partner.owner;
  const token = await tokenOf(email);
  expect(await holdToLinear(token)).toBeGreaterThan(500);
  const headers = { Authorization: `Bearer ${token}` };
  expect((await api.call("GET", `${api.root}/api/v1/verify-token`, { headers })).status).toBe(200);
  expect(api.said).not.toContain("request.failed");
});
