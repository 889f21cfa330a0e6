import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { verify as isSigned } from "@octokit/webhooks-methods";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

import { checksJob } from "../../../dispatcher/delivery/check.ts";
import { Reach } from "../../../dispatcher/delivery/reach.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { createUlids } from "../../../dispatcher/store/ulids.ts";
import { printable, withoutEmpty } from "../../../src/cli/context.ts";
import { redeem } from "../../../src/cli/oauth.ts";
import { run } from "../../../src/cli/run.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { PASSWORD } from "../../support/api.ts";
import { silentLog } from "../../support/dispatch.ts";
import { LOOPBACK } from "../../support/network/direct-deliveries.ts";
import { type CommandEnd, runCommand } from "../../support/processes/command.ts";
import { startProduct, type Product } from "../../support/product.ts";
import { ExactReceiver } from "../../support/network/exact-receiver.ts";
import { type Received, Receiver, until } from "../../support/network/receiver.ts";

describe("login", () => {
  const file = () => join(folder, "reviewrelay", "credentials.json");

  test("gets a token for webhooks through the browser and stores it readable only by its user", async () => {
    const { said, child } = begin(["login", "--no-browser"], envOf());
    await until("the address", () => said.err.includes("state="));
    const address = /\S+\/oauth\/authorize\S+/.exec(said.err)?.[0] ?? "";
    const { email } = product.tenants.partners[0].admin;
    const page = await fetch(await signInByBrowser(address, email));
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("terminal")]);
    expect([await child.exited, said.out]).toEqual([0, expect.stringContaining(email)]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "reviewrelay")).mode & 0o777).toBe(0o700);
    expect(said.out + said.err).not.toContain("eyJ");

    // No variables are needed, because the server and the token are stored.
    const listed = await command(["webhooks"], { XDG_CONFIG_HOME: folder });
    expect(listed).toEqual({ status: 0, said: expect.stringContaining(subscription.id) });
    const kept = JSON.parse(readFileSync(file(), "utf8")).servers[product.root];
    const clients = await product.api().call("GET", "/partner/oauth-clients", {
      token: kept.accessToken,
    });
    expect([clients.status, clients.body["code"]]).toEqual([403, "insufficient_scope"]);
  });

  test("renews its token, even in several concurrent commands", async () => {
    const all = JSON.parse(readFileSync(file(), "utf8"));
    const before = all.servers[product.root];
    all.servers[product.root] = { ...before, expiresAtMs: 0 };
    writeFileSync(file(), JSON.stringify(all));
    const some = await Promise.all([1, 2, 3].map(() => runCommand([MAIN, "webhooks"], envOf())));
    expect(some.map(({ status }) => status)).toEqual([0, 0, 0]);
    const after = JSON.parse(readFileSync(file(), "utf8")).servers[product.root];
    expect(after.refreshToken).not.toBe(before.refreshToken);
    expect(await command(["webhooks"], envOf())).toMatchObject({ status: 0 });
  });

  test("renews its token despite a stale lock of a dead command", async () => {
    const all = JSON.parse(readFileSync(file(), "utf8"));
    all.servers[product.root] = { ...all.servers[product.root], expiresAtMs: 0 };
    writeFileSync(file(), JSON.stringify(all));
    writeFileSync(`${file()}.lock`, "1");
    const old = new Date(Date.now() - 40_000);
    utimesSync(`${file()}.lock`, old, old);
    expect(await command(["webhooks"], envOf())).toMatchObject({ status: 0 });
    expect(existsSync(`${file()}.lock`)).toBe(false);
  });

  test("is ended by logout, locally and on the server", async () => {
    const { accessToken } = JSON.parse(readFileSync(file(), "utf8")).servers[product.root];
    expect(await command(["logout"], envOf())).toMatchObject({ status: 0 });
    expect(existsSync(file())).toBe(false);
    expect(await command(["webhooks"], envOf())).toMatchObject({ status: 77 });
    expect(await command(["webhooks"], as(accessToken))).toMatchObject({ status: 77 });
  });

  test("accepts a pasted address from a browser on another machine", async () => {
    const child = Bun.spawn([process.execPath, MAIN, "login", "--no-browser"], {
      cwd: join(import.meta.dir, "../../.."),
      env: { PATH: process.env["PATH"] ?? "", ...envOf() },
      stdin: "pipe",
      stderr: "pipe",
    });
    children.push(child);
    let said = "";
    for await (const chunk of child.stderr) {
      said += new TextDecoder().decode(chunk);
      if (said.includes("state=") && said.includes("paste")) break;
    }
    const address = /\S+\/oauth\/authorize\S+/.exec(said)?.[0] ?? "";
    const place = await signInByBrowser(address, product.tenants.partners[0].owner.email);
    await child.stdin.write(`${place}\n`);
    await child.stdin.flush();
    expect(await child.exited).toBe(0);
  });

  test("accepts a token on standard input and rejects an invalid one", async () => {
    expect(await command(["login", "--with-token"], envOf(), `${token}\n`)).toMatchObject({
      status: 0,
    });
    const before = readFileSync(file(), "utf8");
    expect(await command(["login", "--with-token"], envOf(), "wrong")).toMatchObject({
      status: 77,
    });
    expect(readFileSync(file(), "utf8")).toBe(before);
  });

  test("checks the given token and not the one of the variable", async () => {
    const fresh = { XDG_CONFIG_HOME: join(folder, "fresh"), REVIEWRELAY_SERVER: product.root };
    const env = { ...fresh, REVIEWRELAY_TOKEN: token };
    expect(await command(["login", "--with-token"], env, "wrong")).toMatchObject({ status: 77 });
    expect(existsSync(join(folder, "fresh"))).toBe(false);
    const good = { ...fresh, REVIEWRELAY_TOKEN: "wrong" };
    expect(await command(["login", "--with-token"], good, token)).toEqual({
      status: 0,
      said: expect.stringContaining("REVIEWRELAY_TOKEN is set and takes precedence"),
    });
    // An empty variable counts as absent.
    expect(await command(["webhooks"], { ...fresh, REVIEWRELAY_TOKEN: "" })).toMatchObject({
      status: 0,
    });
  });

  test("needs no refresh token", async () => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ access_token: "token", expires_in: 60 }),
    });
    const tokens = await redeem(systemClock, server.url.origin, { client_id: "client" });
    expect(tokens).toEqual({
      accessToken: "token",
      clientId: "client",
      expiresAtMs: expect.any(Number),
    });
  });

  test("suggests a remedy for an unknown client or a wrong address", async () => {
    const id = crypto.randomUUID();
    const unknown = await command(["login", "--no-browser", "--client-id", id], envOf());
    expect(unknown).toEqual({ status: 1, said: expect.stringContaining("bun run setup") });
    const other = product.root.replace("127.0.0.1", "localhost");
    const named = await command(["login", "--no-browser", "--server", other], envOf());
    expect(named).toEqual({ status: 1, said: expect.stringContaining(product.root) });
  });
});

describe("listen", () => {
  test("forwards the exact bytes and headers without affecting the delivery", async () => {
    const local = await ExactReceiver.start();
    local.answer = () => 500;
    const { said, copies } = begin(
      ["listen", "--forward-to", local.url, "--verify", "--json"],
      as(token),
    );
    await until("it listens", () => said.err.includes("Connected."));
    await product.emit(3);
    await until("the copies", () => copies().length === 3);
    expect(copies()).toMatchObject(
      Array.from({ length: 3 }, () => ({ signature: "valid", forwarded: { status: 500 } })),
    );
    const original = endpoint.received.slice(-3);
    const heads = local.requests.map((one) => one.split("\r\n\r\n")[0] ?? "");
    expect(local.requests.map((one) => one.slice(one.indexOf("\r\n\r\n") + 4))).toEqual(
      original.map(({ body }) => body),
    );
    for (const [i, { headers }] of original.entries())
      for (const [name, value] of Object.entries(headers).filter(([each]) => each !== "connection"))
        expect(heads[i]?.toLowerCase()).toContain(`${name}: ${value}`.toLowerCase());
    const health = await product.api().call("GET", `/partner/webhooks/${subscription.id}/health`, {
      token,
    });
    expect(health.body).toMatchObject({ pending: 0, success_rate_24h: 1 });
    await local.stop();
  });

  test("loses nothing when the API restarts and shows nothing to other partners", async () => {
    const local = await Receiver.start();
    const foreign = await product.api().login(product.tenants.partners[1].owner.email);
    const theirs = await product.api().call("POST", "/partner/webhooks", {
      token: foreign,
      body: { label: "Theirs", webhook_url: endpoint.url, delivery_kind: "immediate" },
    });
    expect(theirs.status).toBe(201);
    const env = as(token, { WEBHOOK_SECRET: subscription.secret });
    const ours = begin(["listen", "--forward-to", local.url, "--verify", "--json"], env);
    const other = begin(["listen", "--json"], as(foreign));
    await until("both listen", () =>
      [ours, other].every(({ said }) => said.err.includes("Connected.")),
    );
    const before = endpoint.received.length;
    await product.emit(300);
    await until("some copies", () => local.received.length > 50);
    await product.stopApi();
    await until("it has heard of it", () => ours.said.err.includes("The connection closed"));
    await product.startApi();
    await product.emit(300);
    await until("all copies", () => ours.copies().length >= 600);
    expect(local.eventIds).toEqual(endpoint.eventIds.slice(before));
    expect(ours.copies().every(({ signature }) => signature === "valid")).toBe(true);
    await until("the other is back", () => other.said.err.split("Connected.").length === 3);
    expect(other.copies()).toEqual([]);
    ours.child.kill("SIGINT");
    expect(await ours.child.exited).toBe(0);
    expect(ours.said.err).toContain(
      "Deliveries: 600; not forwarded: 0; with an invalid signature: 0.",
    );
    const stranger = await command(["listen", "--webhook", subscription.id], as(foreign));
    expect(stranger).toEqual({ status: 1, said: expect.stringContaining("request") });
    await local.stop();
  });

  test("starts after a given attempt, ends after a count, and reports a closed port", async () => {
    await product.emit(2);
    await until("both are recorded", async () => {
      const path = `/partner/webhooks/${subscription.id}/health`;
      return (await product.api().call("GET", path, { token })).body["pending"] === 0;
    });
    const list = await command(["deliveries", "--limit", "2", "--json"]);
    const [newest, before] = JSON.parse(list.said) as { id: string; event_id: string }[];
    const { status, said } = await command([
      "listen",
      "--after",
      before?.id ?? "",
      "--count",
      "1",
      "--forward-to",
      "1",
      "--json",
    ]);
    expect(status).toBe(0);
    expect(said).toContain("no server listens on this port");
    expect(said).toContain("Deliveries: 1; not forwarded: 1");
    expect(said).toContain(newest?.event_id ?? "-");
  });

  test.each([
    [["--forward-to", "https://elsewhere.example/"], "no"],
    [["--forward-to", "http://192.0.2.1/"], "no"],
    [["--after", "yesterday"], "no"],
    [["--count", "0"], "no"],
    [["--nonsense"], "no"],
  ])("rejects %p", async (args) => {
    expect(await command(["listen", ...args])).toMatchObject({ status: 64 });
  });
});

describe("the other commands", () => {
  test("send a test, show it, and queue it again", async () => {
    const queued = await command(["trigger", "--json"]);
    const { event_id: id } = JSON.parse(queued.said) as { event_id: string };
    await until("it is delivered", async () =>
      (await command(["deliveries", id])).said.includes("delivered"),
    );
    const shown = await command(["deliveries", id]);
    expect(shown.said).toContain('"event":"webhook.test"');
    expect(await command(["redeliver", id])).toEqual({ status: 0, said: `Queued ${id}.\n` });
    expect((await command(["redeliver", id, "nonsense"])).status).toBe(64);
  });

  test("list events by their numbers, and queue them again", async () => {
    await product.emit(2);
    const listed = () => command(["deliveries", "--sequence", "1-2"]);
    await until(
      "both are delivered",
      async () => (await listed()).said.split("delivered").length > 2,
    );
    expect((await listed()).said).toMatch(/^2 .*\n1 .*\n$/);
    const empty = await command(["deliveries", "--sequence", "1000"]);
    expect(empty).toEqual({ status: 0, said: "No deliveries found.\n" });
    expect((await command(["deliveries", "--sequence", "2-1"])).status).toBe(1);
    const queued = await command(["redeliver", "--sequence", "1-2"]);
    expect(queued).toEqual({ status: 0, said: "Queued 2.\n" });
    const none = await command(["redeliver", "--sequence", "999000", "--json"]);
    expect([none.status, JSON.parse(none.said)]).toEqual([0, { queued: 0 }]);
    expect((await command(["redeliver", "--sequence", "900001-900100"])).status).toBe(0);
    for (const wrong of ["0", "2-1", "1-101", "x", "1-", "99999999999999999"])
      expect([wrong, (await command(["redeliver", "--sequence", wrong])).status]).toEqual([
        wrong,
        64,
      ]);
    for (const args of [[], ["01JWNB9PR0ZV8X2D3F4G5H6J00", "--sequence", "1"]])
      expect((await command(["redeliver", ...args])).status).toBe(64);
  });

  test("send a signed test of every event, as the catalog describes it", async () => {
    const { body } = await product.api().call("GET", "/partner/webhooks/events", { token });
    const events = body["events"] as { value: string; schema: object }[];
    expect(events.length).toBeGreaterThan(18);
    const ajv = addFormats(new Ajv2020({ strict: false }));
    for (const { value, schema } of events) {
      const { said } = await command(["trigger", value, "--json"]);
      const { event_id: id } = JSON.parse(said) as { event_id: string };
      const came = () => endpoint.received.find(({ headers }) => headers["x-svc-delivery"] === id);
      await until(`${value} came`, () => came() !== undefined);
      const { headers = {}, body: bytes = "" } = came() ?? {};
      expect([headers["x-svc-event"], headers["x-svc-test"]]).toEqual([value, "1"]);
      const signature = headers["x-svc-signature"] ?? "";
      expect([value, await isSigned(subscription.secret, bytes, signature)]).toEqual([value, true]);
      const fits = ajv.compile(schema);
      expect([value, fits(JSON.parse(bytes)), fits.errors]).toEqual([value, true, null]);
    }
  });

  test("check an endpoint from here, with a secret from the variable or the API", async () => {
    const env = { WEBHOOK_SECRET: subscription.secret };
    const faulty = await command(["check", endpoint.url, "--json"], env);
    const { passed, findings } = JSON.parse(faulty.said) as CheckedReport;
    expect([faulty.status, passed]).toEqual([1, false]);
    expect(findings.flatMap((one) => (one.passed === false ? one.code : []))).toEqual([
      "changed_byte",
      "foreign_secret",
    ]);
    endpoint.answer = verifying;
    for (const more of [env, as(token)]) {
      const checked = await command(["check", endpoint.url], more);
      expect([checked.status, checked.said]).toEqual([0, expect.not.stringContaining("FAULT")]);
    }
    const standard = await command(["check", endpoint.url, "--standard-webhooks"], env);
    expect(standard).toEqual({ status: 1, said: expect.stringContaining("FAULT  old_timestamp") });
    await command(["check", endpoint.url], { ...env, WEBHOOK_HEADERS: '{"X-Api-Key": "key-1"}' });
    expect(endpoint.received.at(-1)?.headers["x-api-key"]).toBe("key-1");
    endpoint.answer = () => 200;
    for (const [args, more] of [
      [["ftp://partner.example/"], env],
      [["nonsense"], env],
      [[endpoint.url], { WEBHOOK_SECRET: "whsec_MTIzNDU2Nzg=" }],
      [[endpoint.url], { ...env, WEBHOOK_HEADERS: "key-1" }],
      [[endpoint.url], { ...env, WEBHOOK_HEADERS: '{"not a name": "key-1"}' }],
      [[endpoint.url, "--minimal"], as(token)],
      [["--standard-webhooks"], env],
    ] as const)
      expect([args, (await command(["check", ...args], more)).status]).toEqual([args, 64]);
  });

  test("end a check at Ctrl-C, also while the endpoint does not answer", async () => {
    const { length } = endpoint.received;
    endpoint.answer = () => "hang";
    const env = envOf({ WEBHOOK_SECRET: subscription.secret });
    const { child, said } = begin(["check", endpoint.url], env);
    await until("the request", () => endpoint.received.length > length);
    child.kill("SIGINT");
    await until("it says so", () => said.err.includes("The check was interrupted."));
    endpoint.answer = () => 200;
    expect(await child.exited).toBe(1);
  });

  test("let the server check the endpoint of the subscription", async () => {
    endpoint.answer = verifying;
    const asked = command(["check"]);
    const { box } = product.api().deps;
    const deps = { db: product.database.db, box, clock: systemClock, log: silentLog };
    const openClient = () => new HttpClient({ policy: LOOPBACK });
    const made = { ...deps, reach: new Reach(), openClient, newUlid: createUlids() };
    const job = checksJob(made, new AbortController().signal);
    await until("it has begun", async () => (await job.run({ reached: "" })).rows === 1);
    const { status, said } = await asked;
    endpoint.answer = () => 200;
    expect([status, said]).toEqual([0, expect.stringContaining("previous_signature")]);
  });

  test("subscribe once, and name the page for changes", async () => {
    const { status, said } = await command(["subscribe", "https://hooks.partner.example/"]);
    expect([status, said]).toEqual([1, expect.stringContaining(`${product.root}/dashboard`)]);
    const foreign = await command(["subscribe", "http://10.0.0.1/"], as("wrong"));
    expect(foreign).toMatchObject({ status: 77 });
  });

  test("recover undelivered events", async () => {
    endpoint.answer = () => 410;
    await product.emit(2);
    const failed = () => command(["deliveries", "--outcome", "failed", "--json"]);
    await until("they failed", async () => JSON.parse((await failed()).said).length === 2);
    endpoint.answer = () => 200;
    const recovered = await command(["recover", "--since", "1h", "--json"]);
    expect(recovered).toEqual({ status: 0, said: expect.stringContaining('"queued": 2') });
    for (const since of [[], ["--since", "x"], ["--since", "2099-01-01"]])
      expect([since, (await command(["recover", ...since])).status]).toEqual([since, 64]);
    const future = await command(["recover", "--since", "2099-01-01T00:00:00Z"]);
    expect(future).toEqual({ status: 64, said: expect.stringContaining("in the past") });
  });

  test("take an age in seconds, minutes, hours or days", async () => {
    const listed = (since: string) => command(["deliveries", "--since", since, "--json"]);
    await product.emit(1);
    await until("it is listed", async () => JSON.parse((await listed("10s")).said).length > 0);
    for (const since of ["90m", "2h", "7d"])
      expect([since, (await listed(since)).status]).toEqual([since, 0]);
    for (const since of ["10", "10w", "-10s", "1.5s"])
      expect([since, (await listed(since)).status]).toEqual([since, 64]);
  });

  test("name their version", async () => {
    const { version } = await Bun.file(join(import.meta.dir, "../../../package.json")).json();
    expect(await command(["--version"])).toEqual({ status: 0, said: `reviewrelay ${version}\n` });
  });

  test("verify a body and report its age", async () => {
    const [last] = endpoint.received.filter(({ body }) => body.includes("delivered_at")).slice(-1);
    const signature = last?.headers["x-svc-signature"] ?? "";
    const secret = { WEBHOOK_SECRET: subscription.secret };
    const verify = (args: readonly string[], body = last?.body ?? "", env = envOf(secret)) =>
      command(["verify", "--signature", signature, ...args], env, body);
    expect(await verify([])).toEqual({ status: 0, said: "The signature is valid.\n" });
    expect(await verify(["--max-age", "600"])).toMatchObject({ status: 0 });
    expect(await verify([], `${last?.body} `)).toMatchObject({ status: 1 });
    expect(await verify([], last?.body, as(token))).toMatchObject({ status: 0 });
    // An empty key would let anybody compute a signature.
    const forged = `sha256=${new Bun.CryptoHasher("sha256", "").update("{}").digest("hex")}`;
    const empty = as(token, { WEBHOOK_SECRET: "" });
    expect(await command(["verify", "--signature", forged], empty, "{}")).toMatchObject({
      status: 1,
    });
    expect(await verify([], last?.body, empty)).toMatchObject({ status: 0 });
    const file = join(folder, "body.json");
    writeFileSync(file, (last?.body ?? "").replace(/"delivered_at":"\d+/, '"delivered_at":"2020'));
    expect(await verify(["--max-age", "600", file])).toMatchObject({ status: 1 });
    const hmac = new Bun.CryptoHasher("sha256", subscription.secret).update("no JSON");
    const plain = ["verify", "--signature", `sha256=${hmac.digest("hex")}`];
    expect(await command(plain, envOf(secret), "no JSON")).toMatchObject({ status: 0 });
  });

  test("have different exit codes for errors, wrong usage and missing sign-in", async () => {
    const nobody = { XDG_CONFIG_HOME: join(folder, "nobody") };
    const statuses = await Promise.all([
      command([]),
      runCommand([MAIN, "nonsense"], {}),
      command(["webhooks"], nobody),
      command(["webhooks", "--server", "http://reviews.example"], nobody),
      command(["webhooks"], { ...nobody, REVIEWRELAY_SERVER: product.root }),
      command(["webhooks"], as("wrong")),
      command(["webhooks", "--server", "http://127.0.0.1:1"]),
      command(["trigger", "--webhook", "01JWNB9PR0ZV8X2D3F4G5H6J00"]),
      command(["help", "listen"]),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([0, 64, 64, 64, 77, 77, 69, 1, 0]);
  });

  test.each([
    ["unavailable", 69],
    ["outcome_unknown", 1],
  ])("answer %s with %d: scripts repeat only what was not carried out", async (code, status) => {
    const fetch = () => Response.json({ message: "No.", code }, { status: 503 });
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
    const env = as("token", { REVIEWRELAY_SERVER: server.url.origin });
    expect(await command(["subscribe", "https://hooks.partner.example/"], env)).toMatchObject({
      status,
    });
  });

  test("name a redirect, and tell whether a request without a response may have been carried out", async () => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.redirect("https://elsewhere.example/x", 307),
    });
    const at = (root: string) => as("token", { REVIEWRELAY_SERVER: root });
    const redirected = await command(["webhooks"], at(server.url.origin));
    const to = expect.stringContaining("307, a redirect to https://elsewhere.example.");
    expect(redirected).toEqual({ status: 1, said: to });
    using closing = Bun.listen({
      port: 0,
      hostname: "127.0.0.1",
      socket: { data: (socket) => void socket.end() },
    });
    const subscribing = ["subscribe", "https://hooks.partner.example/"];
    const lost = await command(subscribing, at(`http://127.0.0.1:${closing.port}`));
    expect(lost).toEqual({ status: 1, said: expect.stringContaining("may have carried out") });
    expect(await command(subscribing, at("http://127.0.0.1:1"))).toMatchObject({ status: 69 });
  });
});

let folder: string;

const MAIN = "src/cli/main.ts";

let product: Product;

/** The receiver at the subscription's address. */
let endpoint: Receiver;

let subscription: { id: string; secret: string };

type CheckedReport = { passed: boolean; findings: { code: string; passed: boolean | null }[] };

/** Answers as a receiver that verifies each signature and not the age. */
async function verifying({ headers, body }: Received): Promise<number> {
  const names = ["x-svc-signature", "x-svc-signature-previous"];
  const given = names.flatMap((name) => headers[name] ?? []);
  const fits = await Promise.all(given.map((one) => isSigned(subscription.secret, body, one)));
  return fits.includes(true) ? 200 : 401;
}

let token: string;

const children: { kill(signal?: NodeJS.Signals): void; readonly exited: Promise<number> }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "command-"));
  product = await startProduct();
  endpoint = await Receiver.start();
  token = await product.api().login(product.tenants.partners[0].owner.email);
  const { body } = await product.api().call("POST", "/partner/webhooks", {
    token,
    body: { label: "Ours", webhook_url: endpoint.url, delivery_kind: "immediate" },
  });
  subscription = { id: String(body["id"]), secret: String(body["secret"]) };
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
});

afterAll(async () => {
  await endpoint.stop();
  await product.stop();
  rmSync(folder, { recursive: true, force: true });
});

const envOf = (more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  XDG_CONFIG_HOME: folder,
  REVIEWRELAY_SERVER: product.root,
  ...more,
});

const as = (bearer: string, more: Readonly<Record<string, string>> = {}) =>
  envOf({ REVIEWRELAY_TOKEN: bearer, ...more });

/** Runs a command within this process. Its real start is tested by `begin` and `runCommand`. */
async function command(
  args: readonly string[],
  env: Readonly<Record<string, string>> = as(token),
  input = "",
): Promise<CommandEnd> {
  const [out, err]: [string[], string[]] = [[], []];
  const status = await run(args, {
    env: withoutEmpty(env),
    clock: systemClock,
    out: (text) => void out.push(`${printable(text)}\n`),
    say: (text) => void err.push(`${printable(text)}\n`),
    stdin: new Blob([input]).stream(),
    signal: new AbortController().signal,
  });
  return { status, said: [...out, ...err].join("") };
}

/** Starts a command that runs until it is ended. */
function begin(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../..", MAIN), ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  children.push(child);
  const said = { out: "", err: "" };
  const keep = async (stream: ReadableStream<Uint8Array>, name: "out" | "err") => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) said[name] += decoder.decode(chunk, { stream: true });
  };
  void keep(child.stdout, "out");
  void keep(child.stderr, "err");
  const copies = () =>
    said.out
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { child, said, copies };
}

/** Acts as a browser at the sign-in page; returns the final address. */
async function signInByBrowser(address: string, email: string): Promise<string> {
  const page = await fetch(address);
  const cookie = (page.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  let html = await page.text();
  for (const fields of [{ action: "sign_in", email, password: PASSWORD }, { action: "allow" }]) {
    const ticket = /name="ticket" value="([^"]+)"/.exec(html)?.[1] ?? "";
    const answer = await fetch(`${product.root}/oauth/authorize`, {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: cookie, Origin: product.root },
      body: new URLSearchParams({ ticket, ...fields }),
    });
    html = await answer.text();
    const place = answer.headers.get("location");
    if (place !== null) return place;
  }
  throw new Error(`The browser is nowhere: ${html}`);
}
