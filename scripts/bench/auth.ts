// `bun run bench auth` compares sign-in with its parts in one run: logins with bare argon2id, authenticated requests
// with an Elysia route without checks, known emails with unknown ones, and sign-ins during a flood with sign-ins
// without one. Only the ratios are meaningful; absolute figures depend on the machine.
//   --seconds N (5): duration of each load; --tree PATH: the checkout that runs
import { availableParallelism } from "node:os";

import type { RawDb } from "../../db/client.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { createPasswords } from "../../src/lib/password.ts";
import { bareRoute } from "./bare.ts";
import { bytesOf, sendAccepted, waitsOf, Wire } from "./load.ts";
import { quantile, readArguments, round, withRig, writeResult, type Rig } from "./rig.ts";
import { addPartners, addProvider } from "./tenants.ts";

const { seconds, tree } = readArguments({ seconds: 5 });
const ROUNDS = 3;
const CONNECTIONS = 16;
const PAIRS = 200;
const PASSWORD = "correct horse battery staple";
/** Upper bound of the requests per second that any version answers, so that the prepared requests do not run out. */
const MOST_PER_SECOND = 200_000;

const say = (text: string) => console.log(text);

type Row = Record<string, string | number>;

interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Scenario {
  readonly what: string;
  /** The name of the measurement with which this one is compared. */
  readonly beside: string;
  readonly run: () => Promise<Measured>;
}

const ARGON2 = "bare argon2id verification";
const BARE = "bare Elysia route";

/** Measures argon2id alone, with the API's own limit of parallel hashes. */
async function bareArgon2(): Promise<Measured> {
  const passwords = createPasswords();
  const hash = await passwords.hash(PASSWORD);
  const startedAt = performance.now();
  const times: number[] = [];
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      while (performance.now() < startedAt + seconds * 1_000) {
        const before = performance.now();
        await passwords.verify(PASSWORD, hash);
        times.push(performance.now() - before);
      }
    }),
  );
  return measuredOf(times, performance.now() - startedAt);
}

function measuredOf(times: readonly number[], ms: number): Measured {
  return {
    perSecond: (times.length * 1_000) / ms,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  };
}

const post = (path: string, body: object) => bytesOf("POST", BASE_PATH + path, { body });

/** Inserts users of a partner with the password `PASSWORD`. Returns their emails. */
async function insertUsers(db: RawDb, partnerId: number): Promise<string[]> {
  const hash = await createPasswords().hash(PASSWORD);
  const emails = Array.from({ length: PAIRS }, (_, n) => `user-${n}@bench.example`);
  await db.sql`
    insert into users (company_id, email, name, role, password_hash, created_at, updated_at)
    select ${partnerId}::int, email, 'Bench', 'partner_admin', ${hash}, now(), now()
      from unnest(${emails}::text[]) as email`;
  return emails;
}

/** Signs the user in and returns the token. */
async function logIn(root: string, email: string): Promise<string> {
  const wire = await Wire.open(root);
  const { body } = await wire.ask(post("/login", { email, password: PASSWORD }));
  wire.close();
  const { token }: { token: string } = JSON.parse(body);
  return token;
}

function overHttp(
  what: string,
  beside: string,
  root: string,
  requests: readonly Uint8Array[],
): Scenario {
  const bytes = Array.from(
    { length: MOST_PER_SECOND * seconds },
    (_, n) => requests[n % requests.length] ?? new Uint8Array(),
  );
  const run = async () => {
    const load = { clients: CONNECTIONS, ms: seconds * 1_000 };
    const offered = await sendAccepted(root, { bytes }, load);
    return measuredOf(waitsOf(offered), offered.endedAt - offered.startedAt);
  };
  return { what, beside, run };
}

async function scenariosOf(root: string, emails: readonly string[]): Promise<Scenario[]> {
  const headers = { Authorization: `Bearer ${await logIn(root, emails[0] ?? "")}` };
  const get = (path: string) => [bytesOf("GET", path, { headers })];
  const logins = emails.map((email) => post("/login", { email, password: PASSWORD }));
  return [
    { what: ARGON2, beside: ARGON2, run: bareArgon2 },
    overHttp("login", ARGON2, root, logins),
    overHttp(BARE, BARE, await bareRoute(), [bytesOf("GET", "/")]),
    overHttp("route of the API without a check", BARE, root, [bytesOf("GET", "/healthz")]),
    // An empty list costs one statement after the check.
    overHttp("bearer-checked request", BARE, root, get(`${BASE_PATH}/partner/webhooks`)),
    overHttp("verify-token", BARE, root, get(`${BASE_PATH}/verify-token`)),
  ];
}

/** Runs all scenarios in each round, so that a slow phase of the machine affects all of them. */
async function throughput(scenarios: readonly Scenario[]): Promise<Row[]> {
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
  const median = (of: (measured: Map<string, Measured>) => number | undefined, digits = 2) => {
    const values = rounds.map((one) => of(one) ?? Number.NaN);
    return round(quantile(values, 0.5), digits);
  };
  return scenarios.map(({ what, beside }) => ({
    what,
    "per second": median((one) => one.get(what)?.perSecond, 1),
    "p50 ms": median((one) => one.get(what)?.p50Ms),
    "p99 ms": median((one) => one.get(what)?.p99Ms),
    // The ratio is computed per round.
    ratio: median((one) => (one.get(what)?.perSecond ?? 0) / (one.get(beside)?.perSecond ?? 1)),
    "ratio to": beside,
  }));
}

/** Sends known and unknown emails alternately on one connection: response times must not reveal which emails exist. */
async function knownAndUnknown(root: string, known: readonly string[]): Promise<Row[]> {
  const type = "forgot_password";
  const resend = (email: string) => post("/email-otp/resend", { email, type });
  const routes: [what: string, of: (email: string) => Uint8Array][] = [
    ["login, wrong password", (email) => post("/login", { email, password: "wrong" })],
    ["discover", (email) => post("/auth/discover", { email })],
    ["OTP resend", resend],
    ["OTP resend, in the cooldown", resend],
    ["OTP verify, wrong code", (email) => post("/email-otp/verify", { email, otp: "x", type })],
  ];
  const wire = await Wire.open(root);
  const rows: Row[] = [];
  for (const [what, of] of routes) {
    const times = { known: [] as number[], unknown: [] as number[] };
    const timed = async (side: keyof typeof times, email: string) => {
      const before = performance.now();
      await wire.ask(of(email));
      times[side].push(performance.now() - before);
    };
    for (const [i, email] of known.entries()) {
      if (i % 2) await timed("known", email);
      await timed("unknown", `none-${i}@bench.example`);
      if (!(i % 2)) await timed("known", email);
    }
    const [one, other] = [quantile(times.known, 0.5), quantile(times.unknown, 0.5)];
    rows.push({
      what,
      "known p50 ms": round(one, 3),
      "unknown p50 ms": round(other, 3),
      "difference %": round((Math.abs(one - other) / Math.max(one, other)) * 100, 1),
    });
  }
  wire.close();
  return rows;
}

/** Number of wrong logins in flight at the same time. It is more than the hasher processes in 10 s on one slow core. */
const FLOOD = 330;
const FLOODS: readonly [what: string, from: (n: number) => string][] = [
  ["one IPv6 /56", (n) => `2001:db8:0:${(n % 256).toString(16)}::1`],
  ["500 IPv4 addresses", (n) => `10.9.${(n % 500) >> 8}.${n % 256}`],
  ["500 IPv4 networks", (n) => `10.${(n % 500) >> 8}.${n % 256}.9`],
];
const PEOPLE = 5;
/**
 * Numbers of wrong passwords after which users sign in: during the first round of the flood, and after each network has
 * sent wrong passwords.
 */
const PHASES = [10, 600];

/**
 * Measures sign-ins while wrong passwords keep the hasher busy, in comparison with sign-ins without a flood. Some users
 * have signed in from their address before, others have not.
 */
async function floods(root: string, people: readonly string[]): Promise<Row[]> {
  const known = people.slice(0, PEOPLE);
  const newcomers = people.slice(PEOPLE, PEOPLE * 2);
  const fromHome = async () => {
    const times: number[] = [];
    for (const [n, email] of known.entries())
      for (let i = 0; i < ROUNDS; i++)
        times.push(await admitted(root, { email, from: `192.0.2.${n + 1}` }));
    return quantile(times, 0.5);
  };
  const quiet = await fromHome();
  const rows: Row[] = [];
  for (const [turn, [what, from]] of FLOODS.entries()) {
    const over = new AbortController();
    const answers = { wrong: 0, refused: 0 };
    const strangers = Array.from({ length: FLOOD }, async (_, n) => {
      for (let i = n; !over.signal.aborted; i += FLOOD) {
        const email = `flood-${turn}-${i}@bench.example`;
        const { status } = await signIn(root, { email, from: from(i), password: "wrong" });
        answers[status === 401 ? "wrong" : "refused"] += 1;
      }
    });
    for (const [phase, begins] of PHASES.entries()) {
      while (answers.wrong < begins) await Bun.sleep(100);
      const busy = await fromHome();
      const late = await Promise.all(
        newcomers.map((email, n) =>
          admitted(root, { email, from: `198.${turn * PHASES.length + phase}.${n}.1` }),
        ),
      );
      rows.push({
        [`${FLOOD} wrong logins from`]: what,
        "after wrong answers": begins,
        "quiet p50 ms": round(quiet, 1),
        "known p50 ms": round(busy, 1),
        ratio: round(busy / quiet, 2),
        "newcomer most ms": round(Math.max(...late), 0),
        "strangers refused": answers.refused,
      });
    }
    over.abort();
    await Promise.all(strangers);
  }
  return rows;
}

interface Try {
  readonly email: string;
  readonly from: string;
  readonly password?: string;
}

/** Signs in over a new connection. */
async function signIn(
  root: string,
  { email, from, password = PASSWORD }: Try,
): Promise<{ status: number; ms: number }> {
  const wire = await Wire.open(root);
  const headers = { "X-Forwarded-For": from };
  const startedAt = performance.now();
  const bytes = bytesOf("POST", `${BASE_PATH}/login`, { headers, body: { email, password } });
  const { status } = await wire.ask(bytes);
  const ms = performance.now() - startedAt;
  wire.close();
  return { status, ms };
}

async function admitted(root: string, one: Try): Promise<number> {
  const { status, ms } = await signIn(root, one);
  if (status !== 200) throw new Error(`The sign-in of ${one.email} returned status ${status}.`);
  return ms;
}

async function measure(rig: Rig): Promise<void> {
  const { root } = rig;
  await rig.start("api");
  await addProvider(rig);
  const [{ partnerId } = { partnerId: 0 }] = await addPartners(rig.db, 1);
  const emails = await insertUsers(rig.db, partnerId);
  say(`\nThroughput, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${seconds} s each`);
  const throughputs = await throughput(await scenariosOf(root, emails));
  say("\nKnown and unknown emails, interleaved");
  const pairs = await knownAndUnknown(root, emails);
  say("\nSign-ins while wrong passwords wait");
  const crowded = await floods(root, emails);
  for (const table of [throughputs, pairs, crowded]) console.table(table);
  const machine = { cores: availableParallelism(), bun: Bun.version };
  writeResult("auth", {
    machine,
    throughput: throughputs,
    known_and_unknown: pairs,
    floods: crowded,
  });
}

say("Starting durable stores, the API and a bare Elysia route …");
const env = { RATE_LIMITS: "off", LOG_LEVEL: "error", TRUSTED_PROXIES: "127.0.0.0/8" };
await withRig({ tree, env }, measure);
