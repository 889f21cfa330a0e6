// Checks of endpoints from the request to the report (contract 6.23), over a real database, the HTTP client of
// deliveries and receivers that are each wrong in one way.
import { createHmac } from "node:crypto";

import { afterEach, describe, expect, test } from "bun:test";

import { checksJob } from "../../../dispatcher/delivery/check.ts";
import { Reach } from "../../../dispatcher/delivery/reach.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { removeOldChecks } from "../../../dispatcher/maintenance/removal-queries.ts";
import { createUlids } from "../../../dispatcher/store/ulids.ts";
import { addMs, type Clock, systemClock } from "../../../src/lib/clock.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { silentLog } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";
import { holding } from "../../support/holding.ts";
import { removeAll } from "../../support/maintenance.ts";
import {
  CA,
  EXPIRED,
  HOOK_TEST,
  MANY_NAMES,
  type ServerCertificate,
} from "../../support/network/certificates.ts";
import { giving, LOOPBACK } from "../../support/network/direct-deliveries.ts";
import { until } from "../../support/network/receiver.ts";
import { type RawReceiver, startRawReceiver } from "../../support/network/raw-receiver.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const world = fixture(() => startWebhooks());

describe("a receiver that", () => {
  test.each(Object.entries(CASES))("%s", async (_, one) => {
    const { faults, tls, settings, clock = systemClock, options = {} } = one;
    const { receiver, id } = await subscribed({ ...one, clock }, settings, tls);
    const before = await stateOf(id);
    const report = await checked(id, { clock, options });
    expect([report["state"], report["reason"], faultsOf(report)]).toEqual(["done", null, faults]);
    expect(report["passed"]).toBe(faults.length === 0);
    for (const finding of report["findings"] as Finding[])
      expect([finding.code, finding.passed === false]).toEqual([
        finding.code,
        finding.advice !== null,
      ]);
    expect(receiver.accepted).toBeGreaterThanOrEqual(receiver.requests.length);
    for (const request of receiver.requests) expect(request).toContain("\r\nX-SVC-Test: 1\r\n");
    // Nothing about the subscription has changed, and nothing of the secret or of an answer is in the report.
    expect(await stateOf(id)).toEqual(before);
    expect(JSON.stringify(report)).not.toContain(await secretOf(id));
  });
});

const HOUR_MS = 3_600_000;
/** Ten days before the end of the certificates of the tests. */
const NEAR_THE_END = new Date("2119-12-22T00:00:00Z");

interface Case {
  /** The faults that the report must name, and no others. */
  readonly faults: readonly string[];
  readonly answer?: Judge;
  readonly tls?: ServerCertificate;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly clock?: Clock;
  readonly options?: Partial<HttpClientOptions>;
}

/** The options of a client for receivers that never answer. */
const IMPATIENT = { timeoutMs: 2_000 };

const CASES: Readonly<Record<string, Case>> = {
  "is correct": { faults: [] },
  "is correct, with TLS": { faults: [], tls: HOOK_TEST },
  "is correct, with Standard Webhooks": { faults: [], settings: { standard_webhooks: true } },
  "is correct, with minimal bodies": { faults: [], settings: { payload_mode: "minimal" } },
  "is correct, behind a gateway that asks for a key": {
    faults: [],
    settings: { headers: { "X-Api-Key": "key-of-the-gateway" } },
    answer: (one, correct) =>
      one.headers["x-api-key"] === "key-of-the-gateway" ? correct(one) : 403,
  },
  "is correct, and answers 404, 410 or nothing to forged requests": {
    faults: [],
    settings: { standard_webhooks: true },
    answer: (one, correct) =>
      correct(one) === 200 ? 200 : (([404, 410, "close"] as const)[one.nth % 3] ?? 404),
  },
  "accepts a changed byte": {
    faults: ["changed_byte"],
    answer: (one, correct) => (one.nth === 3 ? 200 : correct(one)),
  },
  "accepts a foreign secret": {
    faults: ["foreign_secret"],
    answer: (one, correct) => (one.nth === 4 ? 200 : correct(one)),
  },
  "verifies nothing": { faults: ["changed_byte", "foreign_secret"], answer: () => 204 },
  "verifies no tests": {
    faults: ["changed_byte", "foreign_secret", "old_timestamp"],
    settings: { standard_webhooks: true },
    answer: (one, correct) => (one.headers["x-svc-test"] === "1" ? 200 : correct(one)),
  },
  "ignores the timestamp's age": {
    faults: ["old_timestamp"],
    settings: { standard_webhooks: true },
    answer: ({ fits }) => (fits("x-svc-signature", "x-svc-signature-previous") ? 200 : 401),
  },
  "takes only the first of the signatures": {
    faults: ["previous_signature"],
    settings: { standard_webhooks: true },
    answer: (one) => (one.fitsFirst && one.isRecent ? 200 : 401),
  },
  "takes only X-SVC-Signature during a rotation": {
    faults: ["previous_signature"],
    answer: ({ fits }) => (fits("x-svc-signature") ? 200 : 401),
  },
  "takes only X-SVC-Signature-Previous if it is there": {
    faults: ["current_signature"],
    answer: ({ fits, headers }) =>
      fits("x-svc-signature-previous" in headers ? "x-svc-signature-previous" : "x-svc-signature")
        ? 200
        : 401,
  },
  "refuses a repeat": {
    faults: ["repeat"],
    answer: (one, correct) => (one.headers["x-svc-attempt"] === "2" ? 409 : correct(one)),
  },
  "fails at a repeat, and closes the connection": {
    faults: ["repeat"],
    answer: (one, correct) => (one.headers["x-svc-attempt"] === "2" ? "close" : correct(one)),
  },
  "limits requests": {
    faults: ["rate_limit"],
    answer: (one, correct) => (one.nth > 4 ? 429 : correct(one)),
  },
  "refuses unknown fields": {
    faults: ["unknown_field"],
    answer: (one, correct) => (one.body.includes("unknown_field") ? 422 : correct(one)),
  },
  "refuses a charset": {
    faults: ["charset"],
    answer: (one, correct) =>
      one.headers["content-type"] === "application/json" ? correct(one) : 415,
  },
  "is too slow": { faults: ["response_time"], answer: () => "hang", options: IMPATIENT },
  redirects: { faults: ["redirect"], answer: () => 307 },
  "has a certificate that expires in ten days": {
    faults: ["certificate_expiry"],
    tls: HOOK_TEST,
    clock: { ...systemClock, now: () => NEAR_THE_END },
  },
  "has an expired certificate": { faults: ["tls"], tls: EXPIRED },
  "has a certificate of another name": { faults: ["tls"], tls: MANY_NAMES },
  "answers 500 to everything": { faults: ["valid_signature"], answer: () => 500 },
};

test("of a receiver that is too slow, wrong in TLS or refused, one request is tried", async () => {
  const { receiver, id } = await subscribed({ answer: () => "hang" });
  const report = await checked(id, { options: IMPATIENT });
  expect(receiver.requests).toHaveLength(1);
  expect(findingOf(report, "response_time")).toMatchObject({ error_code: "timeout" });
  const wrong = await subscribed({}, {}, EXPIRED);
  const tls = findingOf(await checked(wrong.id), "tls");
  expect([wrong.receiver.requests, tls?.tls_reason]).toEqual([[], "expired"]);
  expect(tls?.advice).toContain("expired");
});

test("a slow or endless body ends after the head, and its size does not matter", async () => {
  const dripping = await startRawReceiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
    socket.write("x".repeat(1_000_000));
  });
  ending.push(dripping);
  const { id } = await subscribed({});
  await moveTo(id, dripping.url);
  const report = await checked(id);
  expect(faultsOf(report)).toEqual(["changed_byte", "foreign_secret"]);
});

describe("no request goes to an address that a delivery may not reach:", () => {
  const PUBLIC_ONLY = { policy: { allowHttp: true, allowedNetworks: [] } };
  test.each([
    ["an address in the URL", (port: number) => `http://127.0.0.1:${port}/`, PUBLIC_ONLY],
    [
      "a name that resolves to it",
      (port: number) => `http://hook.test:${port}/`,
      { ...PUBLIC_ONLY, lookup: giving("127.0.0.1") },
    ],
  ])("%s", async (_, urlOf, options) => {
    const { receiver, id } = await subscribed({});
    await moveTo(id, urlOf(receiver.port));
    const report = await checked(id, { options });
    expect(receiver.accepted).toBe(0);
    expect(faultsOf(report)).toEqual(["connection"]);
    expect(findingOf(report, "connection")).toMatchObject({ error_code: "blocked_address" });
  });
});

describe("during the grace period of a rotation", () => {
  const rotate = async (id: string) =>
    (await world.ask("POST", `/${id}/rotate-secret`, { body: { grace_period_hours: 24 } })).body;

  test("the answer of the rotation offers the check, which says that the new secret is missing", async () => {
    const { id } = await subscribed({});
    const rotated = await rotate(id);
    const url = new URL(String(rotated["check_url"]));
    expect(url.pathname).toBe(`/api/v1/partner/webhooks/${id}/check`);
    expect(faultsOf(await checked(id))).toEqual(["deployed_secret"]);
  });

  test("a receiver with the new secret passes", async () => {
    const { id, secret } = await subscribed({});
    secret.value = String((await rotate(id))["secret"]);
    const report = await checked(id);
    expect([faultsOf(report), findingOf(report, "deployed_secret")?.passed]).toEqual([[], true]);
  });
});

describe("a check is interrupted", () => {
  test.each([
    ["disabled", (id: string) => world.ask("POST", `/${id}/disable`)],
    ["rotated", (id: string) => world.ask("POST", `/${id}/rotate-secret`)],
    [
      "given another URL",
      (id: string) =>
        world.ask("PATCH", `/${id}`, { body: { webhook_url: "http://127.0.0.1:9/" } }),
    ],
    [
      "given headers",
      (id: string) => world.ask("PATCH", `/${id}`, { body: { headers: { "X-Api-Key": "key" } } }),
    ],
  ])("before its next request if the subscription is %s", async (_, change) => {
    const { receiver, id } = await subscribed({
      answer: async (one, correct) => {
        if (one.nth === 2) await change(id);
        return correct(one);
      },
    });
    const report = await checked(id);
    expect(interruption(report)).toEqual(["interrupted", "subscription_changed"]);
    expect(receiver.requests).toHaveLength(2);
    if ((await world.ask("GET", `/${id}`)).body["is_active"] === false)
      expect((await world.ask("POST", `/${id}/check`)).body["code"]).toBe("subscription_disabled");
  });

  test("before its next request if the partner is suspended", async () => {
    const setActive = (isActive: boolean) => world.database.db.sql`
      update companies set is_active = ${isActive} where id = ${world.tenants.partners[0].id}`;
    const { receiver, id } = await subscribed({
      answer: async (one, correct) => {
        if (one.nth === 2) await setActive(false);
        return correct(one);
      },
    });
    const checkId = await requested(id);
    await runJob();
    await setActive(true);
    const report = await reportOf(id, checkId);
    expect(interruption(report)).toEqual(["interrupted", "subscription_changed"]);
    expect(receiver.requests).toHaveLength(2);
  });

  test("and leaves no findings if the subscription is deleted, also afterwards", async () => {
    const { id } = await subscribed({});
    await checked(id);
    const { receiver, id: other } = await subscribed({
      answer: async (one, correct) => {
        if (one.nth === 1) await world.ask("DELETE", `/${other}`);
        return correct(one);
      },
    });
    const checkId = await requested(other);
    await runJob();
    expect(receiver.requests).toHaveLength(1);
    for (const one of [id, other])
      expect(await rowsOf(one)).toMatchObject([
        { state: "interrupted", reason: "subscription_changed", findings: null },
      ]);
    expect((await world.ask("GET", `/${other}/check/${checkId}`)).status).toBe(404);
  });

  test("if no key opens the secret, and no request is made", async () => {
    const { receiver, id } = await subscribed({});
    await world.database.db.sql`
      update webhook_subscriptions set sealed_secret = 'v1.unknown.x' where id = ${id}`;
    expect(interruption(await checked(id))).toEqual(["interrupted", "secret_unreadable"]);
    expect(receiver.requests).toEqual([]);
  });

  test("if the dispatcher stops, without waiting for the receiver", async () => {
    const stop = new AbortController();
    const { receiver, id } = await subscribed({ answer: () => "hang" });
    const checkId = await requested(id);
    const job = jobOf({}, stop.signal);
    await job.run({ reached: "" });
    await until("the request", () => receiver.requests.length === 1);
    stop.abort();
    await job.drain?.();
    expect(interruption(await reportOf(id, checkId))).toEqual(["interrupted", "process_ended"]);
  });

  test("if its process died, after five minutes, and is never repeated", async () => {
    const { receiver, id } = await subscribed({});
    const checkId = await requested(id);
    const startedAt = systemClock.now();
    await world.database.db.sql`
      update endpoint_checks set state = 'running', started_at = ${startedAt} where id = ${checkId}`;
    const at = (ms: number): Clock => ({ ...systemClock, now: () => addMs(startedAt, ms) });
    await runJob({ clock: at(300_000) });
    expect((await reportOf(id, checkId))["state"]).toBe("running");
    await runJob({ clock: at(300_001) });
    expect(interruption(await reportOf(id, checkId))).toEqual(["interrupted", "process_ended"]);
    expect(receiver.requests).toEqual([]);
  });
});

test.each(["pending", "running"])(
  "a locked row of a %s check holds up no other check",
  async (state) => {
    const { id } = await subscribed({});
    const checkId = await requested(id);
    const locked = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
    const lockedId = await requested(locked.id);
    const startedAt = addMs(systemClock.now(), -300_001);
    if (state === "running")
      await world.database.db.sql`
      update endpoint_checks set state = 'running', started_at = ${startedAt} where id = ${lockedId}`;
    const release = await holding(
      world.database.connect(),
      ({ sql }) => sql`select from endpoint_checks where id = ${lockedId} for update`,
    );
    await runJob();
    await release();
    expect((await reportOf(id, checkId))["state"]).toBe("done");
    expect((await reportOf(locked.id, lockedId))["state"]).toBe(state);
    await runJob();
    const ended = state === "pending" ? "done" : "interrupted";
    expect((await reportOf(locked.id, lockedId))["state"]).toBe(ended);
  },
);

describe("the limits", () => {
  test("one check of a subscription at a time: further requests get its id and no audit row", async () => {
    const { id } = await subscribed({});
    const ids = await Promise.all([1, 2, 3].map(() => requested(id)));
    expect(new Set(ids).size).toBe(1);
    const rows = (await world.audit("WEBHOOK_CHECKED")).filter(
      ({ details }) => fieldsOf(details)["subscription_id"] === id,
    );
    expect(rows).toEqual([
      {
        details: { subscription_id: id, check_id: ids[0] },
        actor: world.tenants.partners[0].owner.id,
      },
    ]);
    await runJob();
    expect(await requested(id)).not.toBe(ids[0]);
  });

  test("one of two dispatchers makes a check", async () => {
    const { receiver, id } = await subscribed({});
    await requested(id);
    const begun = await Promise.all([runJob(), runJob()]);
    expect(begun.toSorted()).toEqual([0, 1]);
    expect(receiver.requests).toHaveLength(8);
  });

  test("10 in an hour for all subscriptions of a partner, deleted ones included", async () => {
    await forget();
    const first = await subscribed({});
    for (let n = 1; n <= 9; n++) {
      await requested(first.id);
      await endAll();
    }
    const { id } = await subscribed({});
    await requested(id);
    await endAll();
    const refused = await world.ask("POST", `/${id}/check`);
    expect([refused.status, refused.body["code"]]).toEqual([429, "rate_limited"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    world.clock.advance(HOUR_MS);
    expect((await world.ask("POST", `/${id}/check`)).status).toBe(202);
  });

  test("the newest 20 reports of a partner are kept", async () => {
    await forget();
    const { id } = await subscribed({});
    const ids: string[] = [];
    for (let n = 1; n <= 21; n++) {
      ids.push(await requested(id));
      await endAll();
      world.clock.advance(HOUR_MS / 9);
    }
    const kept = (await rowsOf(id)).map((row) => row["id"]);
    expect(kept).toEqual(ids.slice(1));
  });

  test("the retention time", async () => {
    const { id } = await subscribed({});
    const checkId = await requested(id);
    await endAll();
    const age = (days: number) => world.database.db.sql`
      update endpoint_checks set created_at = now() - make_interval(days => ${days}::int, secs => -600)
       where id = ${checkId}`;
    await age(30);
    await removeAll(removeOldChecks, world.database.db, 30);
    expect(await rowsOf(id)).toHaveLength(1);
    await age(31);
    await removeAll(removeOldChecks, world.database.db, 30);
    expect(await rowsOf(id)).toEqual([]);
  });
});

describe("a report", () => {
  test("is 404 for another partner, another subscription, and an unknown or malformed id", async () => {
    const { id } = await subscribed({});
    const checkId = await requested(id);
    const batch = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
    for (const [path, as] of [
      [`/${id}/check/${checkId}`, "other"],
      [`/${batch.id}/check/${checkId}`, "owner"],
      [`/${id}/check/${batch.id}`, "owner"],
      [`/${id}/check/x`, "owner"],
    ] as const)
      expect((await world.ask("GET", path, { as })).status).toBe(404);
    expect((await world.ask("POST", `/${id}/check`, { as: "other" })).status).toBe(404);
    expect(await reportOf(id, checkId)).toMatchObject({
      state: "pending",
      passed: null,
      started_at: null,
      findings: [],
    });
  });
});

type Finding = {
  readonly code: string;
  readonly severity: string;
  readonly passed: boolean | null;
  readonly error_code: string | null;
  readonly tls_reason: string | null;
  readonly advice: string | null;
};
type Report = Readonly<Record<string, unknown>>;

const ending: RawReceiver[] = [];
afterEach(async () => {
  for (const one of ending.splice(0)) one.stop();
  await endAll();
});

/** A request as a receiver sees it. */
interface Seen {
  readonly nth: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether one of the named headers has a signature by the receiver's secret. */
  readonly fits: (...names: readonly string[]) => boolean;
  /** Whether the first signature of Standard Webhooks is by the receiver's secret. */
  readonly fitsFirst: boolean;
  readonly isRecent: boolean;
}

type Status = number | "hang" | "close";
type Judge = (one: Seen, correct: (one: Seen) => Status) => Status | Promise<Status>;

function correctly({ fits, isRecent }: Seen): Status {
  return fits("x-svc-signature", "x-svc-signature-previous") && isRecent ? 200 : 401;
}

/** Subscribes the first partner to a receiver. Its secret can be replaced. */
async function subscribed(
  { answer = correctly, clock = systemClock }: Pick<Case, "answer" | "clock">,
  settings: Case["settings"] = {},
  tls?: ServerCertificate,
) {
  const secret = { value: "" };
  const receiver = await startRawReceiver(
    (socket, request, nth) => {
      const seen = seenIn(request, { nth, secret: secret.value, now: clock.now() });
      void Promise.resolve(answer(seen, correctly)).then((status) => {
        if (status === "hang") return;
        if (status === "close") return void socket.destroy();
        socket.write(
          `HTTP/1.1 ${status} Answered\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n`,
        );
      });
    },
    tls === undefined ? {} : { tls: { ...tls } },
  );
  ending.push(receiver);
  const made = await world.subscribe({ ...settings, webhook_url: receiver.url });
  secret.value = made.secret;
  if (tls !== undefined) await moveTo(made.id, `https://hook.test:${receiver.port}/`);
  return { receiver, id: made.id, secret };
}

function seenIn(
  request: string,
  { nth, secret, now }: { readonly nth: number; readonly secret: string; readonly now: Date },
): Seen {
  const [head = "", body = ""] = request.split("\r\n\r\n");
  const headers = Object.fromEntries(
    head.split("\r\n").flatMap((line) => {
      const at = line.indexOf(": ");
      return at === -1 ? [] : [[line.slice(0, at).toLowerCase(), line.slice(at + 2)]];
    }),
  );
  const hmac = (text: string) => createHmac("sha256", secret).update(text);
  const signature = `sha256=${hmac(body).digest("hex")}`;
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const standard = `v1,${hmac(signed).digest("base64")}`;
  const sentAt = fieldsOf(JSON.parse(body))["delivered_at"];
  const ageMs = typeof sentAt === "string" ? now.getTime() - new Date(sentAt).getTime() : 0;
  return {
    nth,
    headers,
    body,
    fits: (...names) => names.some((name) => headers[name] === signature),
    fitsFirst: headers["webhook-signature"]?.split(" ")[0] === standard,
    isRecent: Math.abs(ageMs) < 300_000,
  };
}

/** Sets the URL behind the back of the API, which would resolve its name. */
async function moveTo(id: string, url: string): Promise<void> {
  await world.database.db
    .sql`update webhook_subscriptions set webhook_url = ${url} where id = ${id}`;
}

interface Running {
  readonly clock?: Clock;
  readonly options?: Partial<HttpClientOptions>;
}

function jobOf(
  { clock = systemClock, options = {} }: Running = {},
  stop: AbortSignal = new AbortController().signal,
) {
  const client = {
    policy: LOOPBACK,
    ca: [CA],
    lookup: giving("127.0.0.1"),
    maxIdle: 0,
  };
  return checksJob(
    {
      db: world.database.db,
      clock,
      log: silentLog,
      box: world.api.deps.box,
      reach: new Reach(),
      openClient: () => new HttpClient({ ...client, ...options }),
      newUlid: createUlids(),
    },
    stop,
  );
}

/** Runs the job as a process of its own. Returns the number of checks that it made. */
async function runJob(running: Running = {}): Promise<number> {
  const job = jobOf(running);
  const { rows } = await job.run({ reached: "" });
  await job.drain?.();
  return rows;
}

/** Requests a check one millisecond after the one before, because ids of the same millisecond have a random order. */
async function requested(id: string): Promise<string> {
  world.clock.advance(1);
  const { status, body } = await world.ask("POST", `/${id}/check`);
  if (status !== 202) throw new Error(JSON.stringify(body));
  return String(body["check_id"]);
}

const reportOf = async (id: string, checkId: string): Promise<Report> =>
  (await world.ask("GET", `/${id}/check/${checkId}`)).body;

/** Checks the endpoint of a subscription, whatever the partner's limit. */
async function checked(id: string, running: Running = {}): Promise<Report> {
  await world.database.db.sql`
    update endpoint_checks set created_at = created_at - interval '1 hour'`;
  const checkId = await requested(id);
  await runJob(running);
  return reportOf(id, checkId);
}

const findingsOf = (report: Report) => report["findings"] as readonly Finding[];

const faultsOf = (report: Report) =>
  findingsOf(report)
    .filter(({ passed, severity }) => passed === false && severity === "fault")
    .map(({ code }) => code);

const findingOf = (report: Report, code: string) =>
  findingsOf(report).find((one) => one.code === code);

const interruption = (report: Report) => [report["state"], report["reason"]];

async function rowsOf(id: string): Promise<Record<string, unknown>[]> {
  return [
    ...(await world.database.db.sql`
      select * from endpoint_checks where subscription_id = ${id} order by id`),
  ];
}

/** Ends all checks, as a dispatcher that died would leave them in the end. */
const endAll = () => world.database.db.sql`
  update endpoint_checks set state = 'interrupted', reason = 'process_ended', finished_at = now()
   where state in ('pending', 'running')`;

const forget = () => world.database.db.sql`delete from endpoint_checks`;

async function secretOf(id: string): Promise<string> {
  return String((await world.ask("POST", `/${id}/secret`)).body["secret"]);
}

/** The state of a subscription that a check must not change, and the numbers of rows that its deliveries make. */
async function stateOf(id: string) {
  const [row] = await world.database.db.sql`
    select w.*, q.last_sequence,
           (select count(*)::int from delivery_attempts) as attempts,
           (select count(*)::int from outbox) as queued,
           (select count(*)::int from incidents) as incidents
      from webhook_subscriptions w join outbox_sequences q on q.subscription_id = w.id
     where w.id = ${id}`;
  return row;
}
