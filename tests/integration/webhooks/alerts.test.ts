import { afterEach, describe, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import { postAlerts } from "../../../dispatcher/alerts/detect.ts";
import { claimPosts } from "../../../dispatcher/alerts/queries.ts";
import { removeOldIncidents } from "../../../dispatcher/maintenance/removal-queries.ts";
import { createDeliver } from "../../../dispatcher/delivery/deliver.ts";
import { type EgressProxy, parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { Reach } from "../../../dispatcher/delivery/reach.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import { addMs, systemClock } from "../../../src/lib/clock.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";
import { type MailMessage, openMail } from "../../../src/outbox/mail.ts";
import { noteDisabling } from "../../../src/webhooks/queries/incidents.ts";
import {
  changeSubscription,
  lockSubscription,
} from "../../../src/webhooks/queries/subscriptions.ts";
import { detectIncidents, setAlerts } from "../../support/alerts.ts";
import { addAttempt } from "../../support/attempts.ts";
import { removeAll } from "../../support/maintenance.ts";
import { createTestBox, silentLog } from "../../support/dispatch.ts";
import { forceHistory } from "../../support/history.ts";
import {
  forgetQueue,
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { SELF_SIGNED } from "../../support/network/certificates.ts";
import { startRawReceiver } from "../../support/network/raw-receiver.ts";
import { Receiver } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const receiver = fixture(() => Receiver.start());

describe("an alert", () => {
  test("is raised once by any number of runs, also by concurrent ones", async () => {
    await subscribed(5);
    await Promise.all([look(), look(), look()]);
    expect(await raised()).toEqual([]);
    const [row] = await database.db.sql`select count(*)::int as count from alerts`;
    expect(row?.["count"]).toBe(1);
    expect(await mails()).toHaveLength(1);
  });

  test("is raised for an event that waits for 15 minutes without a failure, once backlogs are counted", async () => {
    const one = await subscribed();
    await record(database.db, [reviewAction(one.tenant)]);
    await database.db
      .sql`insert into stats_progress (counted_until) values (date_trunc('minute', now()))`;
    await database.db.sql`
      insert into backlog_stats (subscription_id, bucket_at, entries)
      select ${one.id}, counted_until - interval '5 minutes', 1 from stats_progress`;
    const recordedAgo = (minutes: number) =>
      forceHistory(
        database.db,
        (sql) =>
          sql`update review_history set recorded_at = now() - ${minutes} * interval '1 minute'`,
      );
    await recordedAgo(14.9);
    expect(await raised()).toEqual([]);
    await recordedAgo(15.1);
    expect(await raised(false)).toEqual([]);
    expect(await raised()).toEqual(["oldest_waiting"]);
  });

  test.each([[false], [true]])(
    "is raised once for a disabling that an enable ended before the job ran (alerts of failures before: %p)",
    async (isToldOf) => {
      const one = await subscribed(isToldOf ? 18 : 0);
      await settle(one);
      if (isToldOf) await look();
      const before = (await mails()).length;
      await database.db.sql`
        update webhook_subscriptions
           set state = 'disabled', consecutive_failure_count = 20, disabled_at = now(), disabled_reason = 'x'
         where id = ${one.id}`;
      await database.db.transaction(async (tx) => {
        const { partnerId } = one.tenant;
        const found = await lockSubscription(tx, partnerId, one.id);
        if (found === undefined) throw new Error("It is gone.");
        await noteDisabling(tx, found);
        await changeSubscription(tx, one.id, {
          state: "active",
          disabledAt: null,
          disabledReason: null,
          consecutiveFailureCount: 0,
        });
      });
      expect(await raised()).toEqual(["disabled"]);
      expect(await raised()).toEqual([]);
      const [row] = await database.db.sql`
        select cause->'consecutive_failure_count' as failures from alerts where kind = 'disabled'`;
      expect(row?.["failures"]).toBe(20);
      expect((await mails()).slice(before).map(({ subject }) => subject)).toEqual([
        expect.stringMatching(/is disabled$/),
      ]);
    },
  );

  test("is purged with its incident when that ended before the retention time", async () => {
    const one = await subscribed(5);
    await look();
    await database.db.sql`
      update incidents set ended_at = now() - interval '31 days', ended_by = 'recovered' where subscription_id = ${one.id}`;
    expect(await removeAll(removeOldIncidents, database.db, 32)).toBe(0);
    expect(await removeAll(removeOldIncidents, database.db, 30)).toBe(1);
    expect(await database.db.sql`select from alerts`).toHaveLength(0);
  });
});

describe("mails about alerts", () => {
  test("go to the configured addresses, or by default to the owners", async () => {
    const [named, unnamed] = [await subscribed(5), await subscribed(5)];
    await addOwner(unnamed.tenant, "second-");
    const recipients = ["on-call@partner.example", "ops@partner.example"];
    await settle(named, { recipients: [...recipients, "stranger@example"], confirmed: recipients });
    await look();
    expect(new Set((await mails()).map(({ partnerId }) => partnerId))).toEqual(
      new Set([named.tenant.partnerId, unnamed.tenant.partnerId]),
    );
    expect((await mails()).map(({ to }) => to).toSorted()).toEqual(
      [
        "on-call@partner.example",
        "ops@partner.example",
        `${unnamed.tenant.partnerId}@partner.example`,
        `second-${unnamed.tenant.partnerId}@partner.example`,
      ].toSorted(),
    );
  });

  test("go to the owners while no configured address has confirmed", async () => {
    const one = await subscribed(5);
    await settle(one, { recipients: ["stranger@example"] });
    await look();
    expect((await mails()).map(({ to }) => to)).toEqual([
      `${one.tenant.partnerId}@partner.example`,
    ]);
  });

  test("are sent at most every ten minutes with all alerts since the last one, but at once for a disabling", async () => {
    const one = await subscribed(5);
    await look();
    await setFailures(one, 10);
    await look();
    await setFailures(one, 18);
    aheadMs = 9 * MINUTE_MS;
    await look();
    expect(await mails()).toHaveLength(1);
    aheadMs = 10.1 * MINUTE_MS;
    await look();
    expect((await mails()).map(({ subject }) => subject)).toEqual([
      '5 consecutive failures of webhook subscription "Test"',
      '18 consecutive failures of webhook subscription "Test"',
    ]);
    const other = await subscribed(5);
    await look();
    await setFailures(other, 10);
    await database.db.sql`
      update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'x' where id = ${other.id}`;
    await look();
    expect((await mails()).at(-1)?.subject).toEndWith("is disabled");
  });

  test("tell of a recovery at once, unless another one was told in the last ten minutes", async () => {
    const one = await subscribed();
    const fail = async () => {
      await setFailures(one, 5);
      await look();
    };
    const recover = async () => {
      await addAttempt(database.db, one.id, { started_at: clock.now() });
      await setFailures(one, 0);
      await look();
    };
    const subjects = async () => (await mails()).map(({ subject }) => subject.split('"').at(-1));
    await fail();
    await recover();
    expect(await subjects()).toEqual(["", " has recovered"]);
    await fail();
    await recover();
    expect(await subjects()).toHaveLength(2);
    aheadMs = 10.1 * MINUTE_MS;
    await look();
    expect(await subjects()).toEqual(["", " has recovered", " has recovered"]);
  });

  test("are sent without the condition if that cannot be read", async () => {
    await subscribed(5);
    await database.db.sql`alter table attempt_stats rename to attempt_stats_away`;
    try {
      await look();
    } finally {
      await database.db.sql`alter table attempt_stats_away rename to attempt_stats`;
    }
    const [mail] = await mails();
    expect(mail?.text).toContain("5 consecutive webhook events");
    expect(mail?.text).not.toContain("Condition");
    await setFailures(await subscribed(), 5);
    await look();
    expect((await mails()).at(-1)?.text).toContain("Condition");
  });

  test("combine alerts of both subscriptions of a partner", async () => {
    const one = await subscribed(5);
    const batch = { intervalHours: 1, nextAt: addMs(new Date(), 3_600_000) };
    const { partnerId } = one.tenant;
    await insertSubscription(
      { db: database.db, box },
      { partnerId, url: receiver.url, failures: 10, batch },
    );
    await look();
    expect((await mails()).map(({ subject }) => subject)).toEqual([
      "Alerts for 2 webhook subscriptions",
    ]);
  });
});

describe("posts about alerts", () => {
  const deliverUnder = (networks: string, proxy?: EgressProxy) =>
    createDeliver({
      clock: systemClock,
      client: new HttpClient({
        policy: { allowHttp: true, allowedNetworks: parseNetworks(networks) },
        timeoutMs: 60_000,
        proxy,
      }),
    });
  const postTo = (networks = "127.0.0.0/8", proxy?: EgressProxy) =>
    postAlerts(
      {
        db: database.db,
        clock,
        log: silentLog,
        box,
        config,
        deliver: deliverUnder(networks, proxy),
        reach: new Reach(),
        retryDelaysMs: [MINUTE_MS, MINUTE_MS, MINUTE_MS],
      },
      new AbortController().signal,
    );
  const states = async () =>
    (
      await database.db.sql<{ state: string; attempt: number; error: string | null }[]>`
        select webhook_state as state, webhook_attempt as attempt, webhook_error as error from alerts`
    ).map(({ state, attempt, error }) => [state, attempt, error]);

  test("are signed with the secret of alerts, and describe the alert", async () => {
    const one = await subscribed(5);
    const secret = await settle(one, { url: receiver.url });
    await look();
    await postTo();
    await postTo();
    expect(receiver.received).toHaveLength(1);
    const [{ headers, body } = { headers: {} as Record<string, string>, body: "" }] =
      receiver.received;
    expect(await verify(secret, body, headers["x-svc-signature"] ?? "")).toBe(true);
    expect(headers).toMatchObject({ "x-svc-event": "webhook.alert", "x-svc-attempt": "1" });
    expect(JSON.parse(body)).toMatchObject({
      alert: "failures_5",
      alert_id: headers["x-svc-delivery"],
      subscription: { id: one.id, label: "Test", webhook_url: receiver.url },
      cause: { consecutive_failure_count: 5 },
      url: `https://reviews.example/dashboard/webhooks/${one.id}`,
    });
    expect(await states()).toEqual([["sent", 1, null]]);
  });

  test("and mails of a suspended partner are held until it is active again", async () => {
    const one = await subscribed(5);
    await settle(one, { url: receiver.url });
    const turn = (isActive: boolean) => database.db.sql`
      update companies set is_active = ${isActive} where id = ${one.tenant.partnerId}`;
    await turn(false);
    expect(await raised()).toEqual(["failures_5"]);
    expect(await raised()).toEqual([]);
    await postTo();
    expect([await mails(), receiver.received]).toEqual([[], []]);
    await turn(true);
    await look();
    await postTo();
    expect([(await mails()).length, receiver.received.length]).toEqual([1, 1]);
  });

  test("and mails are not made of a kind that is switched off, which is stored, and neither of its end", async () => {
    const one = await subscribed(5);
    await settle(one, { kinds: ["disabled", "recovered"], url: receiver.url });
    expect(await raised()).toEqual(["failures_5"]);
    await setFailures(one, 0);
    expect(await raised()).toEqual([]);
    expect(await mails()).toEqual([]);
    await postTo();
    expect(await states()).toEqual([["none", 0, null]]);
    expect(receiver.received).toEqual([]);
  });

  test("are attempted four times with one id, and then abandoned", async () => {
    receiver.answer = () => 503;
    await settle(await subscribed(5), { url: receiver.url });
    await look();
    for (let n = 0; n < 6; n += 1) {
      await postTo();
      aheadMs += MINUTE_MS + 1;
    }
    expect(receiver.received.map(({ headers }) => headers["x-svc-attempt"])).toEqual([
      "1",
      "2",
      "3",
      "4",
    ]);
    expect(new Set(receiver.eventIds).size).toBe(1);
    expect(await states()).toEqual([["dead", 4, "http_503"]]);
  });

  test("are repeated with the same id if their process dies", async () => {
    await settle(await subscribed(5), { url: receiver.url });
    await look();
    const claimed = await claimPosts(database.db, clock.now());
    await postTo();
    expect(receiver.received).toEqual([]);
    aheadMs = MINUTE_MS + 1_000;
    await postTo();
    expect(receiver.eventIds).toEqual(claimed.map(({ alert }) => alert.id));
    expect(await states()).toEqual([["sent", 2, null]]);
  });

  test("name the reason of a failure of TLS", async () => {
    const secure = await startRawReceiver("", { tls: SELF_SIGNED });
    await settle(await subscribed(5), { url: secure.url });
    await look();
    await postTo();
    secure.stop();
    expect(await states()).toEqual([["queued", 1, "tls_self_signed"]]);
  });

  test("do not count an attempt that a part of our own has failed, and keep its number", async () => {
    await settle(await subscribed(5), { url: receiver.url });
    await look();
    const proxy = parseProxyUrl("http://127.0.0.1:1");
    for (let n = 0; n < 6; n += 1) {
      await postTo("127.0.0.0/8", proxy);
      aheadMs += MINUTE_MS + 1;
    }
    expect(await states()).toEqual([["queued", 0, "unsent"]]);
    await postTo();
    expect(receiver.received.map(({ headers }) => headers["x-svc-attempt"])).toEqual(["1"]);
    expect(await states()).toEqual([["sent", 1, null]]);
  });

  test("never go to an address that deliveries are not allowed to use", async () => {
    await settle(await subscribed(5), { url: receiver.url });
    await look();
    await postTo("10.0.0.0/8");
    expect(receiver.received).toEqual([]);
    expect(await states()).toEqual([["queued", 1, "blocked_address"]]);
  });
});

const MINUTE_MS = 60_000;
const box = createTestBox();

/** Time that every run of the alert job adds to the clock. */
let aheadMs = 0;

const clock = { ...systemClock, now: () => addMs(new Date(), aheadMs) };
const config = { serverRoot: "https://reviews.example" };

afterEach(async () => {
  aheadMs = 0;
  receiver.answer = () => 200;
  receiver.received.splice(0);
  const { sql } = database.db;
  await sql`truncate alerts, incidents, alert_settings, mails, backlog_stats, stats_progress`;
  await forgetQueue(database.db);
  await sql`update webhook_subscriptions set state = 'deleted', deleted_at = now()`;
});

const look = (everywhere = true) => detectIncidents({ db: database.db, clock, box }, everywhere);

const raised = async (everywhere?: boolean) => (await look(everywhere)).map(({ kind }) => kind);

async function subscribed(failures = 0) {
  const tenant = await insertTenant(database.db);
  await addOwner(tenant);
  const made = await insertSubscription(
    { db: database.db, box },
    { partnerId: tenant.partnerId, url: receiver.url, failures },
  );
  return { tenant, id: made.subscriptionId };
}

async function addOwner({ partnerId }: Tenant, prefix = ""): Promise<void> {
  await database.db.sql`
    insert into users (company_id, email, name, role, is_active, created_at, updated_at)
    values (${partnerId}, ${`${prefix}${partnerId}@partner.example`}, 'Owner', 'partner_owner', true, now(), now())`;
}

type Subscribed = Awaited<ReturnType<typeof subscribed>>;

async function setFailures({ id }: Subscribed, failures: number): Promise<void> {
  await database.db.sql`
    update webhook_subscriptions set consecutive_failure_count = ${failures} where id = ${id}`;
}

const settle = ({ tenant }: Subscribed, settings?: Parameters<typeof setAlerts>[2]) =>
  setAlerts({ db: database.db, box }, tenant.partnerId, settings);

async function mails(): Promise<MailMessage[]> {
  const rows = await database.db.sql<{ id: string; sealed: string }[]>`
    select id, sealed_message as sealed from mails order by id`;
  return rows.map(({ id, sealed }) => openMail(box, id, sealed));
}
