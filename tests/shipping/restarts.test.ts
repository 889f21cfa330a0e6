// Runs the commands of docs/operations/upgrades.md for restarts in place unchanged, behind each shipped proxy at once.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { PASSWORD } from "../support/api.ts";
import { addProvider, connectStore, created, type TestProvider } from "../support/factory.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import { until } from "../support/network/receiver.ts";
import { type ShippedFile, startShipped } from "../support/shipped-proxy.ts";
import { createDatabase } from "../support/postgres.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { addTenants } from "../support/tenants.ts";
import { type Drill, drills, settingsOf } from "./drill.ts";

const FILES: readonly ShippedFile[] = ["Caddyfile", "Caddyfile.platform", "nginx.conf"];
/** The restarts of both APIs, one after the other. */
const ROUNDS = 3;
/** The number of POSTs through each proxy before the restarts, and again after them. */
const POSTS = 100;
/** Six restarts, each with a drain, on a loaded machine. */
const TEST_MS = 600_000;

const isMissing = lacks("bash", "caddy", "curl", "nginx");
const database = fixture(createDatabase, !isMissing);
const begin = drills();

test.skipIf(isMissing)(
  "through each shipped proxy, every POST is answered and carried out once while two APIs restart in place, three times each",
  async () => {
    const drill = begin();
    const redisUrl = process.env["TEST_REDIS_URL"] ?? "";
    const { DRAIN_DELAY_MS, ...settings } = {
      ...settingsOf(drill, { databaseUrl: database.url, redisUrl }),
      REDIS_PREFIX: `restarts-${crypto.randomUUID()}:`,
      // Each API accepts tokens that the other one has signed.
      SERVER_ROOT: "http://127.0.0.1",
      DRAIN_DELAY_MS: documentedDelay(),
    };
    const posts = await openPosts(drill);
    const ports = await Promise.all([freePort(), freePort()]);
    const manager = await startManager(drill, { ...settings, DRAIN_DELAY_MS }, ports);
    const token = await posts.signIn(manager.apis);
    const loads = await Promise.all(
      FILES.map(async (file) => {
        const [port, platform] = await Promise.all([freePort(), freePort()]);
        const proxy = await startShipped(file, { port, platform, apis: ports });
        drill.atEnd(() => proxy.stop());
        return posts.start(proxy.root, { file, token });
      }),
    );
    drill.atEnd(() => Promise.all(loads.map((load) => load.stop())));
    const all = (count: number) =>
      until("more answers", () => loads.every((load) => load.count >= count), TEST_MS);
    await all(POSTS);

    const [values = "", restart = ""] = blocks();
    const given = values.replace(/^PORTS=".*"/, `PORTS="${ports.join(" ")}"`);
    const script = [given, ...Array.from({ length: ROUNDS }, () => restart)].join("\n");
    const shell = Bun.spawn(["bash", "--norc", "-eu", "-o", "pipefail", "-c", script], {
      env: { PATH: manager.path },
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
    expect([await shell.exited, said.join("\n")]).toEqual([0, expect.any(String)]);
    expect(manager.restarted).toEqual(Array.from({ length: ROUNDS }, () => ports).flat());
    await all(Math.max(...loads.map(({ count }) => count)) + POSTS);
    await Promise.all(loads.map((load) => load.stop()));

    for (const load of loads)
      expect([load.file, [...load.answers.keys()].toSorted()]).toEqual([
        load.file,
        ["event 200", "login 200", "partner 201"],
      ]);
    const recorded = await database.db.sql<{ name: string }[]>`
      select r.external_review_id as name from review_history h join reviews r on r.id = h.review_id
      union all
      select name from companies where name like '% of client %'`;
    expect(recorded.map(({ name }) => name).toSorted()).toEqual(
      loads.flatMap(({ done }) => done).toSorted(),
    );
  },
  TEST_MS,
);

for (const file of FILES)
  test.skipIf(isMissing)(
    `${file} passes a POST on to the API that is there, and never a second time`,
    async () => {
      const [port = 0, platform = 0, gone = 0, there = 0] = await Promise.all(
        Array.from({ length: 4 }, freePort),
      );
      const received: unknown[] = [];
      const answer: RequestListener = ({ method, url, socket }, response) => {
        if (method === "POST") received.push(url);
        if (url?.endsWith("/logout")) socket.destroy();
        else response.end();
      };
      const proxy = await startShipped(file, { port, platform, apis: [gone, there] });
      const post = (path: string) =>
        fetch(`${proxy.root}${BASE_PATH}${path}`, { method: "POST", body: "{}" });
      // Caddy learns by its checks which APIs are there, and holds a request until then. Each handler checks for itself.
      const handlers = file === "Caddyfile.platform" ? 4 : 1;
      const isSeen = () => proxy.log().split("HTTP request failed").length > 2 * handlers;
      if (file !== "nginx.conf") await until("each handler has asked both", isSeen);
      const held = file === "nginx.conf" ? undefined : post("/login");
      const servers: Server[] = [];
      const listen = (at: number) => servers.push(createServer(answer).listen(at, "127.0.0.1"));
      try {
        listen(there);
        expect((await (held ?? post("/login"))).status).toBe(200);
        for (let n = 0; n < 4; n++) expect((await post("/login")).status).toBe(200);
        listen(gone);
        expect((await post("/logout")).status).toBe(502);
        expect(received).toEqual([
          ...Array.from({ length: 5 }, () => "/api/v1/login"),
          "/api/v1/logout",
        ]);
      } finally {
        await proxy.stop();
        for (const server of servers) server.close();
      }
    },
  );

const page = readFileSync(join(ROOT, "docs/operations/upgrades.md"), "utf8");

const blocks = () =>
  [...page.matchAll(/^```sh(?: values)? run .*\/restarts\.test\.ts\n([\s\S]*?)^```$/gm)].map(
    ([, block]) => block,
  );

/** Returns the default, which is longer than the proxies take to see that an API drains. */
function documentedDelay(): string {
  const settings = readFileSync(join(ROOT, "docs/operations/settings.md"), "utf8");
  const [, value = ""] = /^\| `DRAIN_DELAY_MS` \| `(\d+)` \|/m.exec(settings) ?? [];
  return value;
}

/** Starts the APIs, and takes the place of systemd: `systemctl restart reviewrelay-api@PORT` returns before the API is ready. */
async function startManager(
  { folder, atEnd }: Drill,
  settings: Readonly<Record<string, string>>,
  ports: readonly number[],
) {
  const apis = new Map<number, ApiProcess>();
  const restarted: number[] = [];
  const start = async (port: number) => {
    const api = await ApiProcess.start(settings, { port });
    apis.set(port, api);
    atEnd(() => api.kill());
  };
  await Promise.all(ports.map(start));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch({ url }) {
      const port = Number(/\/restart\/reviewrelay-api@(\d+)$/.exec(url)?.[1]);
      const api = apis.get(port);
      api?.signal("SIGTERM");
      if ((await api?.exited()) !== 0) return new Response(null, { status: 500 });
      restarted.push(port);
      void start(port);
      return new Response();
    },
  });
  atEnd(() => server.stop(true));
  const programs = join(folder, "programs");
  mkdirSync(programs);
  const add = (name: string, command: string) =>
    writeFileSync(join(programs, name), `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
  add("sudo", '"$@"');
  add("systemctl", `curl -fsS "http://127.0.0.1:${server.port}/$1/$2"`);
  return { apis, restarted, path: `${programs}:${process.env["PATH"] ?? ""}` };
}

/** The clients of each proxy; every second one keeps its connection. */
const CLIENTS = 5;
const PACE_MS = 90;

interface Load {
  readonly file: ShippedFile;
  readonly count: number;
  /** The counts of the answers, by kind of request and status. */
  readonly answers: ReadonlyMap<string, number>;
  /** The names of what was created according to the answers. */
  readonly done: readonly string[];
  stop(): Promise<void>;
}

/** Adds tenants; returns functions that sign their operator in and send POSTs of three kinds, none of them a second time. */
async function openPosts({ masterKey }: Drill) {
  const box = createSecretBox({ current: masterKey });
  const provider = await addProvider(database.db, box);
  const { superAdmin, partners } = await addTenants(database.db);
  const siteId = await connectStore(database.db, partners[0].accounts[0], { provider });
  const people = partners.flatMap(({ owner, admin, accounts }) => [
    owner,
    admin,
    ...accounts.flatMap((account) => [account.owner, account.user, account.locationUser]),
  ]);

  const start = (
    root: string,
    { file, token }: { readonly file: ShippedFile; readonly token: string },
  ): Load => {
    const answers = new Map<string, number>();
    const done: string[] = [];
    const over = new AbortController();
    let count = 0;
    const run = async (client: number) => {
      const person = people[FILES.indexOf(file) * CLIENTS + client];
      for (let n = 0; !over.signal.aborted; n++) {
        const name = `${file} ${n} of client ${client}`;
        const { kind, path, body, headers } = ((): Post => {
          if (n % 20 === 5)
            return {
              kind: "login",
              path: "/login",
              body: { email: person?.email, password: PASSWORD },
            };
          if (n % 10 === 0)
            return {
              kind: "partner",
              path: "/admin/partners",
              body: { name },
              headers: { Authorization: `Bearer ${token}` },
            };
          return eventPost(provider, { events: [created(siteId, name)] });
        })();
        const status = await fetch(root + BASE_PATH + path, {
          method: "POST",
          headers: { "Content-Type": "application/json", ...headers },
          body: JSON.stringify(body),
          keepalive: client % 2 === 0,
        }).then(
          async (answer) => (await answer.bytes(), answer.status),
          (error: unknown) => String(error),
        );
        const told = `${kind} ${status}`;
        answers.set(told, (answers.get(told) ?? 0) + 1);
        if (kind !== "login" && (status === 200 || status === 201)) done.push(name);
        count++;
        await Bun.sleep(PACE_MS);
      }
    };
    const running = Array.from({ length: CLIENTS }, (_, client) => run(client));
    return {
      file,
      answers,
      done,
      get count() {
        return count;
      },
      async stop() {
        over.abort();
        await Promise.all(running);
      },
    };
  };
  return {
    start,
    async signIn(apis: ReadonlyMap<number, ApiProcess>): Promise<string> {
      const [api] = apis.values();
      return String((await api?.login(superAdmin.email, PASSWORD))?.body["token"]);
    },
  };
}

interface Post {
  readonly kind: string;
  readonly path: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

function eventPost({ slug, secret }: TestProvider, body: object): Post {
  const digest = new Bun.CryptoHasher("sha256", secret).update(JSON.stringify(body)).digest("hex");
  return {
    kind: "event",
    path: `/providers/${slug}/events`,
    body,
    headers: { "X-Provider-Signature": `sha256=${digest}` },
  };
}
