import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";

import { createServer, type AddressInfo } from "node:net";

import { removeOldMails } from "../../../dispatcher/maintenance/records-queries.ts";
import { createMailStore, nextMailAt, type MailStore } from "../../../dispatcher/mail/queries.ts";
import {
  createMailTransport,
  MAIL_CONNECTIONS,
  type MailTransport,
} from "../../../dispatcher/mail/transport.ts";
import { Mailer } from "../../../dispatcher/mail/mailer.ts";
import { addMs, systemClock, type Clock } from "../../../src/lib/clock.ts";
import type { Log } from "../../../src/lib/log.ts";
import { MAIL_WAKE, queueMails, type NewMail } from "../../../src/outbox/mail.ts";
import { createTestBox, silentLog } from "../../support/dispatch.ts";
import { headerOf, MailServer } from "../../support/network/mail-server.ts";
import { removeAll } from "../../support/maintenance.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";

/** Of one mail: longer than any test, unless a test says otherwise. */
const DEADLINE_MS = 600_000;

let database: TestDatabase;
const box = createTestBox();
const stops: (() => Promise<unknown> | void)[] = [];

beforeAll(async () => {
  database = await createDatabase();
});
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
  await database.db.sql`delete from mails`;
});
afterAll(() => database.drop());

async function mailServer(treat?: Parameters<typeof MailServer.start>[0]): Promise<MailServer> {
  const server = await MailServer.start(treat);
  stops.push(() => server.stop());
  return server;
}

interface SenderOptions {
  readonly server: Pick<MailServer, "url">;
  readonly wrap?: (store: MailStore) => MailStore;
  readonly retryDelaysMs?: readonly number[];
  /** How long one mail may take. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly box?: typeof box;
}

interface Sender {
  readonly mailer: Mailer;
  /** Ends it as a dispatcher that stops does. */
  drain(ms: number): Promise<void>;
}

/** A mailer as a dispatcher runs it, woken by sweeps that come quickly. */
function sender(options: SenderOptions): Sender {
  const { clock = systemClock } = options;
  const store = createMailStore(database.db);
  const mailer = new Mailer({
    clock,
    log: options.log ?? silentLog,
    box: options.box ?? box,
    store: options.wrap?.(store) ?? store,
    count: () => {},
    transport: transportTo(options.server, options.timeoutMs),
    retryDelaysMs: options.retryDelaysMs ?? [50, 100, 150],
  });
  const sweep = setInterval(() => mailer.wake(), 10);
  const drain = async (ms: number) => {
    clearInterval(sweep);
    mailer.stop();
    const idle = until("it to be idle", () => !mailer.busy);
    await Promise.race([idle, Bun.sleep(ms)]);
    mailer.breakOff();
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

test("sends a mail once, after the commit and not before", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const goOn = Promise.withResolvers<void>();
  const queued = database.db.transaction(async (tx) => {
    const wake = await queueMails(tx, { box }, [otp], new Date());
    expect(wake).toEqual(MAIL_WAKE);
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

test("sends nothing of a transaction that is rolled back", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const broken = database.db.transaction(async (tx) => {
    await queueMails(tx, { box }, [otp], new Date());
    throw new Error("Rolled back.");
  });
  expect(broken).rejects.toThrow("Rolled back.");
  await broken.catch(() => undefined);
  mailer.wake();
  await Bun.sleep(100);
  expect(server.asked).toEqual([]);
  expect(await rows()).toEqual([]);
});

test("says who it is from, when it was queued, and that a machine wrote it", async () => {
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
  expect(await stored()).not.toMatch(/ada|reader|code is|123456/);
  expect((await rows())[0]?.sealed_message).toStartWith("v1.");
  const server = await mailServer();
  const { mailer } = sender({ server });
  mailer.wake();
  await until("sent", () => allIn("sent"));
  expect((await rows())[0]).toMatchObject({ sealed_message: null, due_at: null, attempt: 1 });
  expect((await rows())[0]?.settled_at).toBeInstanceOf(Date);
});

test("sends what was queued while the mail server was down, once", async () => {
  const server = await mailServer();
  await server.stop();
  const { mailer } = sender({ server, retryDelaysMs: Array.from({ length: 50 }, () => 50) });
  await queue();
  mailer.wake();
  await until("some attempts", async () => ((await rows())[0]?.attempt ?? 0) > 3);
  expect((await rows())[0]).toMatchObject({
    state: "queued",
    error_code: "connection_failed",
    last_error: "The connection failed.",
  });
  await server.up();
  await until("sent", () => allIn("sent"));
  await Bun.sleep(150);
  expect(server.received).toHaveLength(1);
});

test("tries again although the commit of a failure took longer than the wait after it", async () => {
  const server = await mailServer();
  await server.stop();
  const slow = (store: MailStore): MailStore => ({
    ...store,
    async commit(...outcome) {
      await Bun.sleep(60);
      return store.commit(...outcome);
    },
  });
  const retryDelaysMs = Array.from({ length: 50 }, () => 20);
  const { mailer } = sender({ server, retryDelaysMs, wrap: slow });
  await queue();
  mailer.wake();
  await until("some attempts", async () => ((await rows())[0]?.attempt ?? 0) > 3);
});

test("gives a mail up at once when its recipient is refused for good, and keeps nothing of its words", async () => {
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
    last_error: "RCPT TO was answered 550 5.1.1.",
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

test("makes the retries of a temporary refusal not before their time, and gives up after the last", async () => {
  const server = await mailServer(() => ({ at: "data", code: 451 }));
  const delays = [80, 160, 40];
  const commits: number[] = [];
  const { mailer } = sender({
    server,
    retryDelaysMs: delays,
    wrap: (store) => ({
      ...store,
      commit: (mail, decision, now) => {
        commits.push("dueAt" in decision ? decision.dueAt.getTime() : now.getTime());
        return store.commit(mail, decision, now);
      },
    }),
  });
  const starts: number[] = [];
  const watched = setInterval(() => {
    if (server.asked.length > starts.length) starts.push(Date.now());
  }, 1);
  stops.push(() => clearInterval(watched));
  await queue();
  mailer.wake();
  await until("dead", () => allIn("dead"));
  expect(server.asked).toHaveLength(4);
  expect((await rows())[0]).toMatchObject({ attempt: 4, error_code: "smtp_451" });
  starts.slice(1).forEach((at, i) => expect(at).toBeGreaterThanOrEqual(commits[i] ?? Infinity));
});

test("has each mail sent once by any number of mailers", async () => {
  const server = await mailServer();
  for (let i = 0; i < 60; i++) await queue({ to: `reader-${i}@x.example` });
  for (let i = 0; i < 4; i++) sender({ server });
  await until("all of them", () => allIn("sent"));
  expect(server.received.map((mail) => mail.to[0]).toSorted()).toEqual(
    Array.from({ length: 60 }, (_, i) => `reader-${i}@x.example`).toSorted(),
  );
});

test("repeats a mail under its Message-ID when the process dies between its acceptance and our commit", async () => {
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

test("commits as soon as Postgres answers again, and does not repeat the mail", async () => {
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

test("writes nothing about a mail that was claimed again since", async () => {
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

test("sends a mail at once although the clock that queued it is ahead", async () => {
  const server = await mailServer();
  sender({ server });
  await queue({}, addMs(new Date(), 4_000));
  await until("sent", () => allIn("sent"));
});

test("refuses a recipient with a line break and makes one line of a subject with one", async () => {
  for (const to of ["ada@x.example\r\nBcc: eve@x.example", "ada@x.example\nDATA", "a@x, b@x"]) {
    const refused = queue({ to });
    expect(refused).rejects.toThrow("is no address");
    await refused.catch(() => undefined);
  }
  expect(await rows()).toEqual([]);
  const server = await mailServer();
  const { mailer } = sender({ server });
  await queue({ subject: "Hello\r\nBcc: eve@x.example\r\n\r\nNot the\u2028text\u0000" });
  mailer.wake();
  await until("sent", () => allIn("sent"));
  const [mail = { to: [], raw: "", at: 0 }] = server.received;
  expect(server.asked).toEqual(["ada@reader.example"]);
  expect(headerOf(mail, "Subject")).toBe("Hello Bcc: eve@x.example Not the text");
  expect(headerOf(mail, "Bcc")).toBe("");
});

test("sends past hanging recipients, on no more connections than the bound", async () => {
  const server = await mailServer((to) => (to.startsWith("hang") ? "hang" : "accept"));
  const { mailer } = sender({ server, timeoutMs: 8_000, retryDelaysMs: [60_000] });
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
  // All that while the others hung.
  expect((await rows()).filter((row) => row.state === "queued" && row.attempt === 1)).toHaveLength(
    MAIL_CONNECTIONS - 1,
  );
  await until("the hanging ones to be cut", async () => {
    const hanging = (await rows()).filter((row) => row.state === "queued");
    return hanging.length === MAIL_CONNECTIONS - 1 && hanging.every((row) => row.attempt === 2);
  });
  expect((await rows()).find((row) => row.state === "queued")).toMatchObject({
    error_code: "timeout",
  });
});

test("goes on behind as many hanging recipients as there are connections after one deadline", async () => {
  const server = await mailServer((to) => (to.startsWith("hang") ? "hang" : "accept"));
  const { mailer } = sender({ server, timeoutMs: 2_000, retryDelaysMs: [60_000] });
  const earlier = addMs(new Date(), -1_000);
  for (let i = 0; i < MAIL_CONNECTIONS; i++) await queue({ to: `hang-${i}@x.example` }, earlier);
  await queue();
  mailer.wake();
  await until("all connections to hang", () => server.asked.length === MAIL_CONNECTIONS);
  await Bun.sleep(50);
  expect(server.asked).toHaveLength(MAIL_CONNECTIONS);
  await until("the healthy one", () => server.received.length === 1);
  expect(server.asked).toHaveLength(MAIL_CONNECTIONS + 1);
});

test("cuts a mail server that keeps talking without getting anywhere at the deadline", async () => {
  let lines = 0;
  const talker = createServer((socket) => {
    socket.write("220 Welcome.\r\n");
    // No timeout of a silent connection notices this one.
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
  await until("some talking", () => lines > 5);
  expect((await rows())[0]).toMatchObject({ state: "queued", attempt: 1, error_code: null });
  await until("the cut", async () => (await rows())[0]?.attempt === 2);
  expect((await rows())[0]).toMatchObject({ state: "queued", error_code: "timeout" });
});

test("finishes the mail under way when it is told to stop, and begins none", async () => {
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

test("leaves a mail that it breaks off at the end of the drain as it was", async () => {
  const server = await mailServer(() => "hang");
  const { mailer, drain } = sender({ server });
  await queue();
  mailer.wake();
  await until("the attempt", () => server.asked.length === 1);
  // Without being broken off it would hang until its deadline, and end as a failed attempt.
  await drain(100);
  expect(mailer.busy).toBe(false);
  expect((await rows())[0]).toMatchObject({ state: "queued", attempt: 1, error_code: null });
});

test("does not send a code that has run out, and erases it", async () => {
  const server = await mailServer();
  const { mailer } = sender({ server });
  const now = new Date();
  await queue({ expiresAt: addMs(now, -1) }, now);
  mailer.wake();
  await until("dead", () => allIn("dead"));
  expect(server.asked).toEqual([]);
  expect((await rows())[0]).toMatchObject({ error_code: "expired", sealed_message: null });
});

test("postpones a mail that no key opens, and sends the others", async () => {
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

test("forgets settled mails after their retention, and never a queued one", async () => {
  const old = new Date("2026-05-01T00:00:00.000Z");
  await queue({}, old);
  const server = await mailServer();
  const { drain } = sender({ server });
  await until("sent", () => allIn("sent"));
  await drain(0);
  await queue({}, old);
  const age = (by: string) =>
    database.db
      .sql`update mails set settled_at = now() - ${by}::text::interval where state = 'sent'`;
  await age("29 days 23 hours");
  expect(await removeAll(removeOldMails, database.db, 30)).toBe(0);
  await age("30 days 1 second");
  expect(await removeAll(removeOldMails, database.db, 30)).toBe(1);
  expect(await states()).toEqual(["queued"]);
});

test("holds state, columns and errors together in the table", async () => {
  await queue();
  const broken = [
    database.db.sql`update mails set state = 'sent'`,
    database.db.sql`update mails set sealed_message = null`,
    database.db.sql`update mails set due_at = null`,
    database.db.sql`update mails set state = 'lost'`,
    database.db.sql`update mails set error_code = 'smtp_550'`,
    database.db
      .sql`update mails set state = 'dead', sealed_message = null, due_at = null, settled_at = now()`,
  ];
  for (const { status } of await Promise.allSettled(broken)) expect(status).toBe("rejected");
});

/** The lines as they would be written, without their head. */
function collecting(lines: string[]): Log {
  const write = (event: string, fields: Record<string, unknown> = {}) =>
    void lines.push(JSON.stringify({ event, ...fields }));
  return { debug: write, info: write, warn: write, error: write };
}
