// `bun run bench auth` compares sign-in with its parts in one run: logins with bare argon2id, authenticated requests
// with an Elysia route without a check, and known emails with unknown ones. Only the ratios are meaningful; absolute
// figures depend on the machine.
import { availableParallelism } from "node:os";

import { createAuthenticate } from "../../src/auth/actions/authenticate.ts";
import { openKeyRing } from "../../src/auth/key-ring.ts";
import { findBearers } from "../../src/auth/queries/tokens.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createPasswords } from "../../src/lib/password.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { BENCH_PASSWORD, startAuthRig, type AuthRig } from "./auth-rig.ts";
import { bytesOf, load, LoadConnection, quantile, type LoadRequest } from "./http-load.ts";
import { writeResult } from "./rig.ts";

const SECONDS = 5;
const ROUNDS = 3;
const CONNECTIONS = 16;
const PAIRS = 200;
const CHECKS = 2_000;

const say = (text: string) => console.log(text);
const round = (value: number, digits = 2) => Number(value.toFixed(digits));

type Row = Record<string, string | number>;

/** Measures argon2id alone, with the API's own limit of parallel hashes. */
async function bareArgon2(): Promise<number> {
  const passwords = createPasswords();
  const hash = await passwords.hash(BENCH_PASSWORD);
  const endsAt = performance.now() + SECONDS * 1000;
  let count = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      while (performance.now() < endsAt) {
        await passwords.verify(BENCH_PASSWORD, hash);
        count++;
      }
    }),
  );
  return count / ((performance.now() - startedAt) / 1000);
}

function request(one: Omit<LoadRequest, "path"> & { path: string }): Buffer {
  return bytesOf({ ...one, path: BASE_PATH + one.path });
}

async function tokenOf({ apiRoot }: AuthRig, email: string): Promise<string> {
  const response = await fetch(`${apiRoot}${BASE_PATH}/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email, password: BENCH_PASSWORD }),
  });
  const body: unknown = await response.json();
  return String(Reflect.get(Object(body), "token"));
}

interface Scenario {
  readonly what: string;
  /** The name of the measurement that it is compared with. */
  readonly beside: string;
  readonly run: () => Promise<Measured>;
}

interface Measured {
  readonly perSecond: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
}

const ARGON2 = "bare argon2id verification";
const BARE = "bare Elysia route";

async function scenariosOf(rig: AuthRig): Promise<Scenario[]> {
  const token = await tokenOf(rig, rig.emails[0] ?? "");
  const logins = rig.emails.map((email) =>
    request({ method: "POST", path: "/login", body: { email, password: BENCH_PASSWORD } }),
  );
  const get = (path: string) => request({ method: "GET", path, token });
  return [
    { what: ARGON2, beside: ARGON2, run: async () => ({ perSecond: await bareArgon2() }) },
    overHttp("login", ARGON2, rig.apiRoot, logins),
    overHttp(BARE, BARE, rig.bareRoot, [bytesOf({ method: "GET", path: "/" })]),
    overHttp("route of the API without a check", BARE, rig.apiRoot, [
      bytesOf({ method: "GET", path: "/healthz" }),
    ]),
    // An empty list costs one statement after the check. The catalogue, used earlier, has grown to 48 kB.
    overHttp("bearer-checked request", BARE, rig.apiRoot, [get("/partner/webhooks")]),
    overHttp("verify-token", BARE, rig.apiRoot, [get("/verify-token")]),
  ];
}

function overHttp(
  what: string,
  beside: string,
  root: string,
  requests: readonly Buffer[],
): Scenario {
  return { what, beside, run: () => loadOnce(what, root, requests) };
}

async function loadOnce(
  what: string,
  root: string,
  requests: readonly Buffer[],
): Promise<Measured> {
  const next = (n: number) => requests[n % requests.length] ?? Buffer.alloc(0);
  const result = await load(root, next, { connections: CONNECTIONS, seconds: SECONDS });
  const bad = Object.keys(result.statuses).filter((status) => status !== "200");
  if (bad.length > 0) throw new Error(`${what} was answered ${bad.join(", ")}.`);
  return result;
}

/** Runs all scenarios in each round, so that a slow moment of the machine affects all of them. */
async function throughput(rig: AuthRig): Promise<Row[]> {
  const scenarios = await scenariosOf(rig);
  const rounds: Map<string, Measured>[] = [];
  for (let i = 1; i <= ROUNDS; i++) {
    const measured = new Map<string, Measured>();
    for (const { what, run } of scenarios) {
      const result = await run();
      measured.set(what, result);
      say(`  round ${i} of ${ROUNDS}, ${what}: ${round(result.perSecond, 1)} per second`);
    }
    rounds.push(measured);
  }
  const median = (of: (measured: Map<string, Measured>) => number | undefined) =>
    quantile(
      rounds.map(of).filter((value) => value !== undefined),
      0.5,
    );
  return scenarios.map(({ what, beside }) => ({
    what,
    "per second": round(
      median((one) => one.get(what)?.perSecond),
      1,
    ),
    ...(what !== ARGON2 && {
      "p50 ms": round(median((one) => one.get(what)?.p50Ms)),
      "p99 ms": round(median((one) => one.get(what)?.p99Ms)),
    }),
    // The ratio is computed per round.
    ratio: round(
      median((one) => (one.get(what)?.perSecond ?? 0) / (one.get(beside)?.perSecond ?? 1)),
    ),
    "ratio to": beside,
  }));
}

/** Measures the bearer check alone, sequentially in this process: signature and one look-up. */
async function bearerCheck(rig: AuthRig): Promise<Row[]> {
  const log = createLog({ level: "error", role: "bench", clock: systemClock });
  const box = createSecretBox({ current: rig.config.masterKey });
  const deps = { db: rig.db, box, clock: systemClock, log, config: rig.config };
  const keys = await openKeyRing(deps);
  const authenticate = createAuthenticate({ ...deps, keys });
  const token = await tokenOf(rig, rig.emails[0] ?? "");
  const headers = new Headers({ Authorization: `Bearer ${token}` });
  const call = { requestId: "bench", ip: "127.0.0.1", userAgent: null, headers };
  const { jti } = await authenticate(call);
  return [
    await timed("signature alone", () => keys.verify("at+jwt", token)),
    await timed("the one look-up alone", () => findBearers(rig.db, [jti])),
    await timed("the whole bearer check", () => authenticate(call)),
  ];
}

async function timed(what: string, run: () => Promise<unknown>): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < CHECKS; i++) {
    const before = performance.now();
    await run();
    // The first checks are warm-up.
    if (i >= CHECKS / 10) times.push(performance.now() - before);
  }
  return {
    what,
    "p50 ms": round(quantile(times, 0.5), 3),
    "p99 ms": round(quantile(times, 0.99), 3),
  };
}

/** Sends known and unknown emails alternately on one connection: response times must not reveal which emails exist. */
async function knownAndUnknown(rig: AuthRig): Promise<Row[]> {
  const emails = {
    known: rig.emails.slice(0, PAIRS),
    unknown: Array.from({ length: PAIRS }, (_, n) => `none-${n}@bench.example`),
  };
  const type = "forgot_password";
  const routes: [what: string, of: (email: string) => Buffer][] = [
    [
      "login, wrong password",
      (email) => request({ method: "POST", path: "/login", body: { email, password: "wrong" } }),
    ],
    ["discover", (email) => request({ method: "POST", path: "/auth/discover", body: { email } })],
    [
      "OTP resend",
      (email) => request({ method: "POST", path: "/email-otp/resend", body: { email, type } }),
    ],
    [
      "OTP resend, in the cooldown",
      (email) => request({ method: "POST", path: "/email-otp/resend", body: { email, type } }),
    ],
    [
      "OTP verify, wrong code",
      (email) =>
        request({ method: "POST", path: "/email-otp/verify", body: { email, otp: "x", type } }),
    ],
  ];
  const connection = await LoadConnection.open(rig.apiRoot);
  const rows: Row[] = [];
  for (const [what, of] of routes) {
    const times = { known: [] as number[], unknown: [] as number[] };
    for (let i = 0; i < PAIRS; i++)
      for (const side of i % 2
        ? (["known", "unknown"] as const)
        : (["unknown", "known"] as const)) {
        const bytes = of(emails[side][i] ?? "");
        const before = performance.now();
        await connection.send(bytes);
        times[side].push(performance.now() - before);
      }
    const [known, unknown] = [quantile(times.known, 0.5), quantile(times.unknown, 0.5)];
    say(`  ${what}: ${PAIRS} of each`);
    rows.push({
      what,
      "known p50 ms": round(known, 3),
      "unknown p50 ms": round(unknown, 3),
      "difference %": round((Math.abs(known - unknown) / Math.max(known, unknown)) * 100, 1),
    });
  }
  connection.close();
  return rows;
}

say("Starting durable stores, the API and a bare Elysia route …");
const rig = await startAuthRig(PAIRS);
try {
  say(`\nThroughput, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s each`);
  const throughputs = await throughput(rig);
  say("\nThe bearer check by itself");
  const checks = await bearerCheck(rig);
  say("\nKnown and unknown emails, interleaved");
  const pairs = await knownAndUnknown(rig);
  for (const table of [throughputs, checks, pairs]) console.table(table);
  const machine = { cores: availableParallelism(), bun: Bun.version };
  const result = {
    machine,
    throughput: throughputs,
    bearer_check: checks,
    known_and_unknown: pairs,
  };
  say(`Written to ${writeResult("auth", result)}`);
} finally {
  await rig.stop();
}
process.exit(0);
