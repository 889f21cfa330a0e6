import { afterEach, describe, expect, test } from "bun:test";

import { createServer, type AddressInfo } from "node:net";

import { ulid } from "ulid";

import { createMailStore, nextMailAt, type MailStore } from "../../../dispatcher/mail/queries.ts";
import {
  createMailTransport,
  MAIL_CONNECTIONS,
  type MailTransport,
} from "../../../dispatcher/mail/transport.ts";
import { MAIL_SHARD, Mailer } from "../../../dispatcher/mail/mailer.ts";
import { SWEEP_MS } from "../../../dispatcher/store/sweep.ts";
import { addMs, systemClock, type Clock } from "../../../src/lib/clock.ts";
import type { Log } from "../../../src/lib/log.ts";
import { queueMails, type NewMail } from "../../../src/outbox/mail.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
} from "../../support/dispatch.ts";
import { headerOf, MailServer } from "../../support/network/mail-server.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("sends a mail once, after the commit and not before", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const goOn = Promise.withResolvers<void>();
  const queued = database.db.transaction(async (tx) => {
    await queueMails(tx, { box }, [otp], new Date());
    mailer.wake();
    await goOn.promise;
  });
  await Bun.sleep(150);
  expect(server.asked).toEqual([]);
  goOn.resolve();
  await queued;
  mailer.wake();
  mailer.wake();
  await until("sent", () => allIn("sent"));
  mailer.wake();
  await Bun.sleep(100);
  expect(server.received.map((mail) => mail.to)).toEqual([["ada@reader.example"]]);
  expect(await nextMailAt(database.db)).toBeUndefined();
});

describe("a dispatcher", () => {
  test("sends each mail when it is woken, long before its sweep", async () => {
    const { server, schedule } = await startMailing();
    const startedMs = performance.now();
    for (let sent = 1; sent <= 10; sent++) {
      await queue();
      await schedule.wakeMailer();
      await until("the mail", () => server.received.length === sent);
    }
    expect(performance.now() - startedMs).toBeLessThan(5 * SWEEP_MS);
  });

  test("finds a mail by its sweep if the wake was lost", async () => {
    const { server } = await startMailing();
    await queue();
    await until("the mail", () => server.received.length === 1);
  });

  test("finds a mail by its sweep if an API of version 0.1.0 has sent the wake, and removes the wake", async () => {
    const { server, schedule, warned } = await startMailing();
    await queue();
    await schedule.wake([{ subscriptionId: "mail", shard: MAIL_SHARD }]);
    await until("the mail", () => server.received.length === 1);
    const planned = async () => (await schedule.takeDue(MAIL_SHARD, new Date(), 0)).nextAt;
    await until("its removal", async () => (await planned()) === undefined);
    expect(warned).toEqual([]);
  });

  test("claims a retry when it is due, also between two sweeps, and only if it is in charge", async () => {
    const clock = createFakeClock();
    const dueAt = addMs(clock.now(), 1_000);
    const claims: Date[] = [];
    const wrap = (store: MailStore): MailStore => ({
      ...store,
      nextAt: async () => dueAt,
      claim: async (at) => (claims.push(at), []),
    });
    const { mailer } = sender({ server: { url: "smtp://127.0.0.1" }, clock, wrap, sweepMs: null });
    const ended = new AbortController();
    let isInCharge = false;
    const running = mailer.run(ended.signal, () => isInCharge);
    const pass = async (ms: number) => {
      await until("its sleep", () => clock.sleepers > 0);
      clock.advance(ms);
      await Bun.sleep(1);
    };
    await pass(SWEEP_MS);
    expect(claims).toEqual([]);
    isInCharge = true;
    clock.set(addMs(dueAt, -400 - SWEEP_MS));
    await pass(SWEEP_MS);
    await pass(399);
    expect(claims).toEqual([]);
    await pass(1);
    expect(claims).toEqual([dueAt]);
    ended.abort();
    await running;
  });

  /** A dispatcher with a mail server, which holds all shards and has looked for mails once. */
  async function startMailing() {
    const server = await mailServer();
    const redis = await createTestSchedule();
    const warned: string[] = [];
    const log = { ...silentLog, warn: (event: string) => void warned.push(event) };
    const mailTransport = transportTo(server);
    const { schedule } = redis;
    const dispatcher = startDispatcher({ db: database.db, box, schedule, mailTransport, log });
    stops.push(redis.close, redis.flush, () => dispatcher.stop());
    await queue();
    await until("its first mail", () => server.received.length === 1);
    server.received.length = 0;
    return { server, schedule, warned };
  }
});

test("a mail has headers for its sender, the time it was queued, and its automatic origin", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const queuedAt = new Date("2026-06-01T12:00:00.000Z");
  await queue({ subject: "Zoë’s review ★★★★★", text: "Grüße", html: "<p>Grüße</p>" }, queuedAt);
  mailer.wake();
  await until("sent", () => allIn("sent"));
  const [mail = { to: [], raw: "", at: 0 }] = server.received;
  const [row] = await rows();
  expect(headerOf(mail, "From")).toBe('"Reviews, Inc." <no-reply@reviews.example>');
  expect(headerOf(mail, "To")).toBe("ada@reader.example");
  expect(headerOf(mail, "Message-ID")).toBe(`<${row?.id}@reviews.example>`);
  expect(headerOf(mail, "Date")).toBe("Mon, 01 Jun 2026 12:00:00 +0000");
  expect(headerOf(mail, "Auto-Submitted")).toBe("auto-generated");
  expect(headerOf(mail, "Content-Type")).toContain("multipart/alternative");
  expect(headerOf(mail, "X-Mailer")).toBe("");
});

test("keeps the message sealed while it waits, and erases it once it is sent", async () => {
  await queue();
  const stored = async () => JSON.stringify(await rows());
  expect(await stored()).not.toMatch(/ada@|reader|code is|123456/);
  expect((await rows())[0]?.sealed_message).toStartWith("v1.");
  const server = await mailServer();
  const { mailer } = sender({ server });
  mailer.wake();
  await until("sent", () => allIn("sent"));
  expect((await rows())[0]).toMatchObject({ sealed_message: null, due_at: null, attempt: 1 });
  expect((await rows())[0]?.settled_at).toBeInstanceOf(Date);
});

test("sends a mail that was queued while the mail server was down, once", async () => {
  const server = await mailServer();
  await server.stop();
  const { mailer } = sender({ server, retryDelaysMs: Array.from({ length: 50 }, () => 50) });
  await queue();
  mailer.wake();
  await until("some attempts", async () => ((await rows())[0]?.attempt ?? 0) > 3);
  expect((await rows())[0]).toMatchObject({
    state: "queued",
    error_code: "connection_failed",
    last_error: "The connection to the mail server failed.",
  });
  await server.up();
  await until("sent", () => allIn("sent"));
  await Bun.sleep(150);
  expect(server.received).toHaveLength(1);
});

describe("a mail of somebody who is not active", () => {
  const tenants = fixture(() => addTenants(database.db));

  test.each([
    ["to a user", "users", {}],
    ["to a user of the company", "account", {}],
    ["to a user below the partner", "partner", {}],
    ["to a reviewer about a review of the company", "account", { to: "rita@reader.example" }],
    ["to a reviewer about a review below the partner", "partner", { to: "rita@reader.example" }],
    ["to a recipient about alerts of the partner", "partner", { kind: "webhook_alert" }],
    ["to a recipient who is to confirm", "partner", { kind: "alert_recipient" }],
  ] as const)("%s (%s) waits as for a mail server that is down", async (_whose, off, mail) => {
    const [{ id: partnerId, accounts }] = tenants.partners;
    const [{ owner, ...account }] = accounts;
    const { sql } = database.db;
    const turn = (isActive: boolean) =>
      off === "users"
        ? sql`update users set is_active = ${isActive} where id = ${owner.id}`
        : sql`update companies set is_active = ${isActive}
               where id = ${off === "account" ? account.id : partnerId}`;
    const isAboutReview = "to" in mail;
    await turn(false);
    const ofAlerts = "kind" in mail ? { ...mail, partnerId } : {};
    await queue(
      isAboutReview
        ? { ...mail, kind: "homeowner_notice", reviewId: await reviewOf(account) }
        : { to: owner.email, ...ofAlerts },
    );
    const server = await mailServer();
    const { mailer } = sender({ server, retryDelaysMs: Array.from({ length: 99 }, () => 50) });
    mailer.wake();
    await until("some attempts", async () => ((await rows())[0]?.attempt ?? 0) > 2);
    const [row] = await rows();
    expect([row?.state, row?.error_code, server.asked]).toEqual(["queued", "company_inactive", []]);
    await turn(true);
    await until("sent", () => allIn("sent"));
    expect(server.received.map(({ to }) => to)).toEqual([[isAboutReview ? mail.to : owner.email]]);
  });

  test("is sent to a recipient of alerts, who need not be a user", async () => {
    const { email, id } = tenants.partners[1].owner;
    await database.db.sql`update users set is_active = false where id = ${id}`;
    const server = await mailServer();
    const { mailer } = sender({ server });
    await queue({ to: email, kind: "webhook_alert" });
    mailer.wake();
    await until("sent", () => allIn("sent"));
  });

  async function reviewOf({
    id,
    partnerId,
    storeIds,
  }: Omit<TestAccount, "owner">): Promise<number> {
    const { sql } = database.db;
    const [site] = await sql<{ id: number }[]>`
      insert into review_sites (slug, name, sealed_secret) values (${ulid()}, 'Site', '') returning id`;
    const [place] = await sql<{ id: number }[]>`
      insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
      values (${storeIds[0] ?? 0}, ${site?.id ?? 0}, ${id}, ${partnerId}, true, true) returning id`;
    const [review] = await sql<{ id: number }[]>`
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at)
      values (${partnerId}, ${id}, ${storeIds[0] ?? 0}, ${place?.id ?? 0}, ${ulid()}, 5, 'Fine', now(), now(), now())
      returning id`;
    return review?.id ?? 0;
  }
});

test("gives up a mail at once after a permanent rejection of its recipient, and keeps only the status codes", async () => {
  const text = "5.1.1 <ada@reader.example> is unknown";
  const server = await mailServer(() => ({ at: "rcpt", code: 550, text }));
  const lines: string[] = [];
  const { mailer } = sender({ server, log: collecting(lines) });
  await queue();
  mailer.wake();
  await until("dead", () => allIn("dead"));
  expect((await rows())[0]).toMatchObject({
    attempt: 1,
    sealed_message: null,
    error_code: "smtp_550",
    last_error: "RCPT TO failed with reply 550 5.1.1.",
  });
  expect(server.asked).toHaveLength(1);
  const [line = ""] = lines;
  expect(lines).toHaveLength(1);
  expect(JSON.parse(line)).toEqual({
    event: "mail.attempted",
    mail_id: (await rows())[0]?.id,
    kind: "otp",
    attempt: 1,
    outcome: "dead",
    error_code: "smtp_550",
  });
});

test("claims no more mails than it has connections, although the table had one mail when it was analysed", async () => {
  await queue();
  await database.db.sql`vacuum analyze mails`;
  for (let i = 0; i < 12; i++) await queue();
  const claimed = await createMailStore(database.db).claim(new Date(), MAIL_CONNECTIONS);
  expect(claimed).toHaveLength(MAIL_CONNECTIONS);
});

test("several mailers send each mail once", async () => {
  const server = await mailServer();
  for (let i = 0; i < 60; i++) await queue({ to: `reader-${i}@x.example` });
  for (let i = 0; i < 4; i++) sender({ server });
  await until("all of them", () => allIn("sent"));
  expect(server.received.map((mail) => mail.to[0]).toSorted()).toEqual(
    Array.from({ length: 60 }, (_, i) => `reader-${i}@x.example`).toSorted(),
  );
});

test("repeats a mail with the same Message-ID if the process dies after its acceptance and before the commit", async () => {
  const server = await mailServer();
  const dying = sender({
    server,
    wrap: (store) => ({ ...store, commit: () => Promise.reject(new Error("Gone.")) }),
  });
  await queue();
  await until("the first", () => server.received.length === 1);
  await dying.drain(0);
  expect(await states()).toEqual(["queued"]);
  const early = sender({ server });
  await Bun.sleep(100);
  await early.drain(0);
  expect(server.received).toHaveLength(1);
  sender({ server, clock: { ...systemClock, now: () => addMs(new Date(), 61_000) } });
  await until("sent", () => allIn("sent"));
  const [first, second] = server.messageIds;
  expect(server.received).toHaveLength(2);
  expect(second).toBe(first ?? "");
});

test("commits as soon as PostgreSQL works again, and does not send the mail again", async () => {
  const server = await mailServer();
  let failures = 3;
  const { mailer } = sender({
    server,
    wrap: (store) => ({
      ...store,
      commit: (...args) =>
        failures-- > 0 ? Promise.reject(new Error("Restarting.")) : store.commit(...args),
    }),
  });
  await queue();
  mailer.wake();
  await until("sent", () => allIn("sent"));
  expect(server.received).toHaveLength(1);
});

test("does not commit the result of a mail that was claimed again meanwhile", async () => {
  const server = await mailServer();
  const again = new Date(Date.now() + 120_000);
  const committed: string[] = [];
  sender({
    server,
    wrap: (store) => ({
      ...store,
      async commit(mail, decision, at) {
        await database.db.sql`update mails set due_at = ${again}`;
        await store.commit(mail, decision, at);
        committed.push(decision.kind);
      },
    }),
  });
  await queue();
  await until("the commit", () => committed.length > 0);
  expect(committed).toEqual(["sent"]);
  expect((await rows())[0]).toMatchObject({ state: "queued", attempt: 1, due_at: again });
});

test("sends a mail at once although it was queued by a process with a clock that is ahead", async () => {
  const server = await mailServer();
  sender({ server });
  await queue({}, addMs(new Date(), 4_000));
  await until("sent", () => allIn("sent"));
});

test("gives up a recipient that is no address without asking the server, sends the others, and replaces line breaks in a subject and the name of a sender", async () => {
  const bad = ["ada@x.example\r\nBcc: eve@x.example", "ada@x.example\nDATA", "a@x, b@x"];
  for (const to of bad) await queue({ to });
  const server = await mailServer();
  const { mailer } = sender({ server });
  const subject = "Hello\r\nBcc: eve@x.example\r\n\r\nNot the\u2028text\u0000";
  await queue({ subject, sender: "Stellar\r\nBcc: eve@x.example" });
  mailer.wake();
  await until("settled", async () => (await rows()).every(({ state }) => state !== "queued"));
  const [mail = { to: [], raw: "", at: 0 }] = server.received;
  expect(server.asked).toEqual(["ada@reader.example"]);
  const states = (await rows()).map(({ state, error_code: code }) => [state, code]);
  expect(states.toSorted()).toEqual([...bad.map(() => ["dead", "bad_address"]), ["sent", null]]);
  expect(headerOf(mail, "Subject")).toBe("Hello Bcc: eve@x.example Not the text");
  expect(headerOf(mail, "From")).toMatch(/^"Stellar Bcc: eve@x.example" <no-reply@.+>$/);
  expect(headerOf(mail, "Bcc")).toBe("");
});

test("sends mails while other recipients hang, on no more than `MAIL_CONNECTIONS` connections", async () => {
  const server = await mailServer((to) => (to.startsWith("hang") ? "hang" : "accept"));
  const { mailer } = sender({ server });
  const earlier = addMs(new Date(), -1_000);
  for (let i = 0; i < MAIL_CONNECTIONS - 1; i++)
    await queue({ to: `hang-${i}@x.example` }, earlier);
  for (let i = 0; i < 40; i++) await queue({ to: `reader-${i}@x.example` });
  mailer.wake();
  await until("the healthy ones", () => server.received.length === 40);
  expect(server.peak).toBeLessThanOrEqual(MAIL_CONNECTIONS);
  await until("their records", async () => {
    const sent = (await rows()).filter((row) => row.state === "sent");
    return sent.length === 40;
  });
  // The other mails were sent while these still hung in their first attempt.
  expect((await rows()).filter((row) => row.state === "queued" && row.attempt === 1)).toHaveLength(
    MAIL_CONNECTIONS - 1,
  );
});

test("aborts a mail at its deadline although the server keeps sending lines", async () => {
  let lines = 0;
  const talker = createServer((socket) => {
    socket.write("220 Welcome.\r\n");
    // These lines keep an idle timeout from ending the connection.
    const talking = setInterval(() => {
      lines += 1;
      socket.write("250-Please wait.\r\n");
    }, 20);
    socket.on("error", () => undefined).on("close", () => clearInterval(talking));
  });
  await new Promise<void>((resolve) => talker.listen(0, "127.0.0.1", resolve));
  stops.push(() => new Promise((resolve) => talker.close(resolve)));
  const { port } = talker.address() as AddressInfo;
  const url = `smtp://127.0.0.1:${port}`;
  const { mailer } = sender({ server: { url }, timeoutMs: 1_000, retryDelaysMs: [60_000] });
  await queue();
  mailer.wake();
  await until("the cut", async () => (await rows())[0]?.attempt === 2);
  expect(lines).toBeGreaterThan(1);
  expect((await rows())[0]).toMatchObject({ state: "queued", error_code: "timeout" });
});

test("finishes the mails in flight when it is stopped, and starts no others", async () => {
  const server = await mailServer();
  const slow = Promise.withResolvers<void>();
  const { mailer, drain } = sender({
    server,
    wrap: (store) => ({
      ...store,
      commit: async (...args) => {
        await slow.promise;
        return store.commit(...args);
      },
    }),
  });
  for (let i = 0; i < MAIL_CONNECTIONS + 4; i++) await queue();
  mailer.wake();
  await until("as many as fit", () => server.received.length === MAIL_CONNECTIONS);
  const drained = drain(5_000);
  slow.resolve();
  await drained;
  expect(mailer.busy).toBe(false);
  mailer.wake();
  await Bun.sleep(100);
  expect((await states()).toSorted()).toEqual([
    ...Array.from({ length: 4 }, () => "queued"),
    ...Array.from({ length: MAIL_CONNECTIONS }, () => "sent"),
  ]);
});

test("leaves a mail unchanged that it aborts at the end of the shutdown", async () => {
  const server = await mailServer(() => "hang");
  const { mailer, drain } = sender({ server });
  await queue();
  mailer.wake();
  await until("the attempt", () => server.asked.length === 1);
  // The mail would otherwise hang until its deadline, and count as a failed attempt.
  await drain(100);
  expect(mailer.busy).toBe(false);
  expect((await rows())[0]).toMatchObject({ state: "queued", attempt: 1, error_code: null });
});

test("does not send an expired code, and erases it", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const now = new Date();
  await queue({ expiresAt: addMs(now, -1) }, now);
  mailer.wake();
  await until("dead", () => allIn("dead"));
  expect(server.asked).toEqual([]);
  expect((await rows())[0]).toMatchObject({ error_code: "expired", sealed_message: null });
});

test("postpones a mail that no key can decrypt, and sends the others", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  await database.db.transaction((tx) =>
    queueMails(tx, { box: createTestBox() }, [otp], new Date()),
  );
  await queue();
  mailer.wake();
  await until("the other", async () => (await states()).includes("sent"));
  await until("the postponed", async () =>
    (await rows()).some((row) => row.error_code === "unreadable"),
  );
  const left = (await rows()).find((row) => row.state === "queued");
  expect(left).toMatchObject({ attempt: 1 });
  expect(left?.due_at?.getTime()).toBeGreaterThan(Date.now() + 60_000);
});

/** Collects log entries as JSON texts of the event and its fields. */
function collecting(lines: string[]): Log {
  const write = (event: string, fields: Record<string, unknown> = {}) =>
    void lines.push(JSON.stringify({ event, ...fields }));
  return { debug: write, info: write, warn: write, error: write };
}

/** The default deadline of one mail, longer than any test. */
const DEADLINE_MS = 600_000;

const box = createTestBox();

const stops: (() => Promise<unknown> | void)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
  await database.db.sql`delete from mails`;
});

async function mailServer(treat?: Parameters<typeof MailServer.start>[0]): Promise<MailServer> {
  const server = await MailServer.start(treat);
  stops.push(() => server.stop());
  return server;
}

interface SenderOptions {
  readonly server: Pick<MailServer, "url">;
  readonly wrap?: (store: MailStore) => MailStore;
  readonly retryDelaysMs?: readonly number[];
  /** The deadline of one mail. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly box?: typeof box;
  /** The interval of the sweeps; null if there is none. */
  readonly sweepMs?: null;
}

interface Sender {
  readonly mailer: Mailer;
  /** Stops the mailer as a dispatcher does: it may finish its mails within `ms`, and aborts the others. */
  drain(ms: number): Promise<void>;
}

/** Runs a mailer as a dispatcher does, but with a sweep every 10 ms. */
function sender(options: SenderOptions): Sender {
  const { clock = systemClock } = options;
  const store = createMailStore(database.db);
  const mailer = new Mailer({
    clock,
    log: options.log ?? silentLog,
    box: options.box ?? box,
    store: options.wrap?.(store) ?? store,
    transport: transportTo(options.server, options.timeoutMs),
    retryDelaysMs: options.retryDelaysMs ?? [50, 100, 150],
  });
  const sweep = options.sweepMs === null ? undefined : setInterval(() => mailer.wake(), 10);
  const drain = async (ms: number) => {
    clearInterval(sweep);
    mailer.stop();
    const idle = until("it to be idle", () => !mailer.busy);
    await Promise.race([idle, Bun.sleep(ms)]);
    mailer.abort();
    await idle;
  };
  stops.push(() => drain(0));
  return { mailer, drain };
}

function transportTo(server: Pick<MailServer, "url">, timeoutMs = DEADLINE_MS): MailTransport {
  const transport = createMailTransport({
    url: server.url,
    from: { name: "Reviews, Inc.", address: "no-reply@reviews.example" },
    timeoutMs,
  });
  stops.push(() => transport.close());
  return transport;
}

const otp: NewMail = {
  kind: "otp",
  to: "ada@reader.example",
  subject: "Your code",
  text: "The code is 123456.",
};

function queue(mail: Partial<NewMail> = {}, now = new Date()): Promise<unknown> {
  return database.db.transaction((tx) => queueMails(tx, { box }, [{ ...otp, ...mail }], now));
}

interface MailRow {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly sealed_message: string | null;
  readonly due_at: Date | null;
  readonly settled_at: Date | null;
  readonly error_code: string | null;
  readonly last_error: string | null;
}

const rows = async (): Promise<MailRow[]> =>
  Array.from(await database.db.sql<MailRow[]>`select * from mails order by id`);

const states = async () => (await rows()).map((row) => row.state);

const allIn = async (state: string) => (await states()).every((one) => one === state);
