import { randomBytes } from "node:crypto";

import type { RawDb } from "../../db/client.ts";
import { serverTime } from "../../db/server.ts";
import { createApp, type AppDeps } from "../../src/app.ts";
import { openKeyRing } from "../../src/auth/keys/key-ring.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { systemClock, type Clock } from "../../src/lib/clock.ts";
import { readConfig, type Config } from "../../src/lib/config.ts";
import type { Log } from "../../src/lib/log.ts";
import { createPasswords, type Passwords } from "../../src/lib/password.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { createWriterPool } from "../../src/outbox/writer-pool.ts";
import { addSigningKeys } from "./signing-keys.ts";

/** The password of every test user. All share one, so that each test file hashes only once. */
export const PASSWORD = "correct horse battery staple";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body; empty if there is none. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export interface CallOptions {
  readonly token?: string | undefined;
  /** Text and bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestApi {
  readonly deps: AppDeps & { readonly db: RawDb };
  /** The log so far, one JSON text per entry. */
  readonly lines: readonly string[];
  /** Calls a path below `{base_url}` (`/api/v1`), or with `root` a path below `{server_root}`. */
  call(method: string, path: string, options?: CallOptions & { root?: boolean }): Promise<Answer>;
  /** Signs in and answers the token; throws if the sign-in fails. */
  login(email: string, password?: string): Promise<string>;
  /** Listens for tests that need a real connection, on a free port if none is given; answers `{server_root}`. */
  listen(port?: number): string;
  stop(): Promise<void>;
}

type Overrides = Partial<Omit<AppDeps, "config" | "db">> & {
  readonly db: RawDb;
  readonly config?: Partial<Config>;
};

/** Builds complete settings for a test. It reads nothing from the environment, so that every machine tests the same. */
export function testConfig(overrides: Partial<Config> = {}): Config {
  const base = readConfig({
    DATABASE_URL: "postgres://unused.invalid/test",
    REDIS_URL: "redis://unused.invalid",
    SERVER_ROOT: "http://localhost:3000",
    MASTER_KEY: randomBytes(32).toString("base64"),
    RATE_LIMITS: "off",
    SIGNUP_CODES: "on",
    ACCESS_LOG: "off",
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8,::1/128",
  });
  return { ...base, ...overrides };
}

/**
 * A clock on which short waits take real time. The batching of src/lib/batches.ts waits up to `BRIEF_MS` for more requests,
 * and under a stopped test clock it would wait forever.
 */
function briefly(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms, signal) => (ms <= BRIEF_MS ? systemClock : clock).sleep(ms, signal),
  };
}

const BRIEF_MS = 3;

const verified = new Map<string, Promise<boolean>>();

/**
 * Verifies each pair of a password and a hash only once per test file, because a verification takes 40 ms of a core and
 * tests sign in thousands of times. Tests that count verifications pass their own passwords.
 */
function rememberingPasswords(): Passwords {
  const passwords = createPasswords();
  return {
    ...passwords,
    verify(password, hash, from) {
      const key = `${password} ${hash}`;
      const known = verified.get(key) ?? passwords.verify(password, hash, from);
      verified.set(key, known);
      return known;
    },
  };
}

/**
 * Builds the API over a real database. Its other dependencies are real too, except the schedule, which drops all
 * wakes.
 */
export async function startApi({
  db,
  config: settings,
  clock: given = systemClock,
  ...overrides
}: Overrides): Promise<TestApi> {
  const config = testConfig(settings);
  const lines: string[] = [];
  const clock = briefly(given);
  const log = overrides.log ?? memoryLog(lines);
  const box = overrides.box ?? createSecretBox({ current: config.masterKey });
  if (overrides.keys === undefined) await addSigningKeys(db, box, clock.now());
  const deps: TestApi["deps"] = {
    config,
    db,
    writerPool: createWriterPool(db, clock, { connections: 10, share: 10, waitMs: 60_000 }),
    clock,
    log,
    box,
    schedule: { wake: () => {}, wakeMailer: () => {} },
    keys: overrides.keys ?? (await openKeyRing({ db, box, clock, log, config })),
    passwords: rememberingPasswords(),
    checks: { postgres: () => serverTime(db) },
    ...overrides,
  };
  const app = createApp(deps);
  const call: TestApi["call"] = async (method, path, options = {}) => {
    const url = `http://localhost${options.root ? "" : BASE_PATH}${path}`;
    return answerOf(await app.handle(new Request(url, requestOf(method, options))));
  };
  return {
    deps,
    lines,
    call,
    async login(email, password = PASSWORD) {
      const { status, body, text } = await call("POST", "/login", { body: { email, password } });
      if (status !== 200)
        throw new Error(`The sign-in of ${email} was answered ${status}: ${text}`);
      return String(body.token);
    },
    listen(port = 0) {
      app.listen({ port, hostname: "127.0.0.1" });
      return `http://127.0.0.1:${app.server?.port}`;
    },
    async stop() {
      if (app.server) await app.stop(true);
    },
  };
}

/** Reads all pages of a list by its cursors. `path` must already have a query with a `limit`. */
export async function everyPage<Row>(api: TestApi, path: string, token: string): Promise<Row[][]> {
  const pages: Row[][] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const next = cursor === "" ? "" : `&cursor=${cursor}`;
    const { status, body, text } = await api.call("GET", path + next, { token });
    if (status !== 200) throw new Error(`The list was answered ${status}: ${text}`);
    pages.push(body["data"] as Row[]);
    cursor = body["next_cursor"] as string | null;
  }
  return pages;
}

function requestOf(method: string, { token, body, headers = {} }: CallOptions): RequestInit {
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  return {
    method,
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
  };
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  const body = isJson && text !== "" ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, body, text };
}

function memoryLog(lines: string[]): Log {
  const at =
    (level: string) =>
    (event: string, fields: Record<string, unknown> = {}) =>
      void lines.push(JSON.stringify({ level, event, ...fields }));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
