import { afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";

import { systemClock } from "../../../src/lib/clock.ts";
import { openMail } from "../../../src/outbox/mail.ts";
import { detectIncidents, startAlerts } from "../../support/alerts.ts";
import { CA, EXPIRED } from "../../support/network/certificates.ts";
import { startRawReceiver } from "../../support/network/raw-receiver.ts";
import { type Receiver, until } from "../../support/network/receiver.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

// Incidents and alert settings as a partner uses them.

const { world, ending, ...given } = webhookDeliveries();

describe("the incident", () => {
  test("shows its beginning, the last response, the number of attempts by cause, and its alerts", async () => {
    const id = await start();
    const [first, ...others] = await disable(id);
    await look();
    const { body } = await world.ask("GET", `/${id}/incident`);
    const deliveries = await world.ask("GET", `/${id}/deliveries/${first ?? ""}`);
    const [attempt] = deliveries.body["attempts"] as { started_at: string }[];
    expect(body).toMatchObject({
      since: attempt?.started_at,
      last_answer: { event_id: others.at(-1), status_code: 410, response_excerpt: "" },
      step: 300,
      causes: [{ status_code: 410, attempts: 20, counts: [20] }],
    });
    const alerts = body["alerts"] as { kind: string }[];
    expect(alerts.map(({ kind }) => kind)).toEqual([
      "failures_5",
      "failures_10",
      "failures_18",
      "disabled",
    ]);
  });

  // Contract 7.13.
  test("of a failure of TLS has the reason, and so have the deliveries, the health, the alert and the mail", async () => {
    const secure = ending(await startRawReceiver("", { tls: EXPIRED }));
    const id = await start({ webhook_url: secure.url });
    const get = async (path: string) => (await world.ask("GET", `/${id}${path}`)).body;
    const [eventId] = await world.emit(5);
    await until("the failures", async () => (await get(""))["consecutive_failure_count"] === 5);
    expect(secure.requests).toEqual([]);
    const failure = { status_code: null, error_code: "tls", tls_reason: "expired" };
    const attempts = Array.from({ length: 4 }, () => expect.objectContaining(failure));
    expect((await get(`/deliveries/${eventId}`))["attempts"]).toEqual(attempts);
    expect((await get("/deliveries?limit=4"))["data"]).toEqual(attempts);
    expect(await get("/health")).toMatchObject({ first_failure: failure });
    expect(await get("/incident")).toMatchObject({
      last_answer: failure,
      causes: [{ ...failure, attempts: 20 }],
    });
    await look();
    const [alert] = await world.database.db
      .sql`select cause from alerts where subscription_id = ${id}`;
    expect(alert?.["cause"]).toMatchObject({ first_failure: failure, last_failure: failure });
    expect(await lastMail()).toMatch(
      /First event that failed for good: .*no response \(The certificate has expired\)/,
    );
  });
});

describe("the past incidents", () => {
  test("have beginning, end, cause and attempts, and those around an enable are one", async () => {
    const id = await start();
    await disable(id);
    await look();
    const { body: incident } = await world.ask("GET", `/${id}/incident`);
    const { body: disabled } = await world.ask("GET", `/${id}`);
    expect((await world.ask("GET", `/${id}/incidents`)).body).toEqual({ incidents: [] });
    // The mail says the same as the page.
    const text = await lastMail();
    const since = String(incident["since"]).slice(0, 19).replace("T", " ");
    expect(text).toContain("Condition: Disabled\n");
    expect(text).toContain(`Failing since: ${since} UTC\n`);
    receiver.answer = () => 200;
    await world.ask("POST", `/${id}/enable`);
    // The first look ends the incident with the enable, which begins the next one; the second one sees the 2xx.
    await look();
    await world.emit(1);
    await until("the delivery", async () => {
      const { body } = await world.ask("GET", `/${id}/health`);
      return body["pending"] === 0 && body["last_success_at"] !== null;
    });
    await look();
    const { body } = await world.ask("GET", `/${id}/incidents`);
    expect(body).toEqual({
      incidents: [
        {
          id: expect.any(String),
          began_at: incident["since"],
          ended_at: expect.any(String),
          ended_by: "recovered",
          disabled_at: disabled["disabled_at"],
          failed_attempts: 20,
          status_code: 410,
          error_code: "http_status",
          tls_reason: null,
        },
      ],
    });
    const [past] = body["incidents"] as { ended_at: string }[];
    expect(String(past?.ended_at) > String(disabled["disabled_at"])).toBe(true);
  });
});

describe("the alert settings", () => {
  const alerts = (method: string, body?: unknown, path = "") =>
    world.api.call(method, `/partner/alerts${path}`, {
      token: world.tokens.owner,
      ...(body !== undefined && { body }),
    });
  const hook = "https://alerts.example/hook";

  test("are all kinds, to the owners, by default", async () => {
    expect((await alerts("GET")).body).toEqual({
      recipients: null,
      unconfirmed_recipients: [],
      kinds: [
        "head_retrying",
        "oldest_waiting",
        "failures_5",
        "failures_10",
        "failures_18",
        "disabled",
        "recovered",
      ],
      oldest_waiting_minutes: 15,
      digest_minutes: 10,
      webhook_url: null,
      secret_fingerprint: null,
      updated_at: null,
    });
  });

  test("change only in the fields of the body, and the audit log names these", async () => {
    await alerts("PATCH", { recipients: ["ops@partner.example"], digest_minutes: 0 });
    const { status, body } = await alerts("PATCH", { oldest_waiting_minutes: 60 });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        recipients: ["ops@partner.example"],
        digest_minutes: 0,
        oldest_waiting_minutes: 60,
        secret: null,
      }),
    ]);
    const rows = await world.audit("ALERTS_UPDATED");
    expect(rows.map((row) => row["details"])).toContainEqual({
      fields: ["recipients", "digest_minutes"],
      changes: { digest_minutes: { from: 10, to: 0 } },
    });
  });

  test("have a secret only with a URL, which can be rotated and shown again", async () => {
    expect((await alerts("POST", {}, "/secret")).status).toBe(404);
    expect((await alerts("POST", {}, "/rotate-secret")).status).toBe(404);
    const { body: made } = await alerts("PATCH", { webhook_url: hook });
    expect(made["secret"]).toMatch(/^[0-9a-f]{64}$/);
    const { body: moved } = await alerts("PATCH", { webhook_url: `${hook}2` });
    expect(moved).toMatchObject({ secret: null, secret_fingerprint: made["secret_fingerprint"] });
    expect((await alerts("POST", {}, "/secret")).body["secret"]).toBe(String(made["secret"]));
    const { body: rotated } = await alerts("POST", {}, "/rotate-secret");
    expect(rotated["secret"]).not.toBe(made["secret"]);
    expect((await alerts("POST", {}, "/secret")).body["secret"]).toBe(String(rotated["secret"]));
    expect(await world.audit("ALERTS_SECRET_SHOWN")).toHaveLength(2);
    expect((await alerts("PATCH", { webhook_url: null })).body["secret_fingerprint"]).toBeNull();
  });

  test.each([
    [{ recipients: [] }, "recipients"],
    [{ recipients: ["a <b@c.example>"] }, "recipients.0"],
    [{ recipients: Array.from({ length: 11 }, (_, n) => `${n}@p.example`) }, "recipients"],
    [{ kinds: ["failures_5"] }, "kinds"],
    [{ kinds: ["disabled", "unknown"] }, "kinds.1"],
    [{ oldest_waiting_minutes: 9 }, "oldest_waiting_minutes"],
    [{ oldest_waiting_minutes: 1441 }, "oldest_waiting_minutes"],
    [{ digest_minutes: -1 }, "digest_minutes"],
    [{ digest_minutes: 1441 }, "digest_minutes"],
    [{ webhook_url: "https://10.0.0.1/hook" }, "webhook_url"],
    [{ webhook_url: "ftp://alerts.example/" }, "webhook_url"],
  ])("reject %j", async (body, field) => {
    const answer = await alerts("PATCH", body);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] ?? {})).toContain(field);
  });

  test.each([
    { recipients: Array.from({ length: 10 }, (_, n) => `${n}@p.example`) },
    { oldest_waiting_minutes: 10, digest_minutes: 0 },
    { oldest_waiting_minutes: 1440, digest_minutes: 1440 },
    { kinds: ["disabled"] },
  ])("accept %j", async (body) => {
    expect((await alerts("PATCH", body)).status).toBe(200);
  });

  test("belong to one tenant, and only its admins may use them", async () => {
    await alerts("PATCH", { webhook_url: hook });
    const other = await world.api.call("GET", "/partner/alerts", { token: world.tokens.other });
    expect(other.body["webhook_url"]).toBeNull();
    for (const who of ["account", "location", "root"] as const) {
      const token = world.tokens[who];
      expect((await world.api.call("GET", "/partner/alerts", { token })).status).toBe(403);
    }
  });
});

test("the POST of an alert verifies with the secret that the API showed", async () => {
  const id = await start();
  const hooks = await given.receiver();
  const made = await world.api.call("PATCH", "/partner/alerts", {
    token: world.tokens.owner,
    body: { webhook_url: hooks.url },
  });
  await disable(id);
  ending(startAlerts(world));
  await until("the alerts", () => hooks.received.length === 4);
  for (const { body, headers } of hooks.received)
    expect(await verify(String(made.body["secret"]), body, headers["x-svc-signature"] ?? "")).toBe(
      true,
    );
});

let receiver: Receiver;

afterEach(async () => {
  await world.database.db.sql`truncate alerts, incidents, alert_settings`;
});

async function start(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
  receiver = await given.receiver();
  given.dispatcher({ http: { ca: [CA] } });
  const { id } = await world.subscribe({ webhook_url: receiver.url, ...fields });
  return id;
}

const look = () => detectIncidents({ db: world.database.db, box: world.api.deps.box });

/** Returns the text of the latest mail about alerts. */
async function lastMail(): Promise<string> {
  const [mail] = await world.database.db.sql<{ id: string; sealed: string }[]>`
    select id, sealed_message as sealed from mails where kind = 'webhook_alert' order by id desc limit 1`;
  return openMail(world.api.deps.box, mail?.id ?? "", mail?.sealed ?? "").text;
}

const isActive = async (id: string) => (await world.ask("GET", `/${id}`)).body["is_active"];

async function disable(id: string, count = 20): Promise<string[]> {
  receiver.answer = () => 410;
  const failed = await world.emit(count);
  await until("disabled", async () => (await isActive(id)) === false);
  world.clock.set(systemClock.now());
  return failed;
}
