import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { openMail, type MailMessage } from "../../../src/outbox/mail.ts";
import type { Schedule } from "../../../src/outbox/schedule.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  queuedFor,
  report,
  reviewIdOf,
  send,
  type HistoryRow,
  type TestProvider,
} from "../../support/factory.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import type { TestAccount } from "../../support/tenants.ts";
import { disable, startWebhooks, type WebhookWorld } from "../../support/webhooks.ts";

describe("the notice to the homeowner", () => {
  test("is queued in the partner's branding, with the response, and announced to the mailer", async () => {
    await answered({ reviewer: "Ada" }, "Thank you!\nCome again.");
    const [mail, ...more] = await mails();
    expect(more).toEqual([]);
    expect(mail).toMatchObject({
      kind: "homeowner_notice",
      to: ADA,
      sender: "Brand p1",
      subject: "p1-a1 east responded to your review",
    });
    expect(mail?.text).toContain("Hello Ada,");
    expect(mail?.text).toContain("> Thank you!\n> Come again.");
    expect(mail?.text.trimEnd().endsWith("Brand p1")).toBe(true);
    expect(mail?.html).toContain("rgb(17,34,51)");
    expect(mail?.html).toContain("Thank you!<br>Come again.");
    expect(world.wakes).toContain("mail");
  });

  test("escapes all text from outside", async () => {
    await answered({ reviewer: `<img src=x onerror="a">` }, `</blockquote><script>"&'</script>`);
    const [mail] = await mails();
    expect(mail?.html).not.toMatch(/<script|<img|<Plumbing/);
    expect(mail?.html).toContain("&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;");
    expect(mail?.html).toContain("A &amp; B &lt;Plumbing&gt;");
    expect(mail?.text).toContain("A & B <Plumbing>");
  });

  test("of a partner without white label has our branding, and an invalid colour is ignored", async () => {
    const { sql } = world.database.db;
    const [partner] = world.tenants.partners;
    await sql`
      update companies set white_label_enabled = false, primary_color = 'red;background:url(x)'
       where id = ${partner.id}`;
    await answered();
    const [mail] = await mails();
    await sql`
      update companies set white_label_enabled = true, primary_color = '#112233' where id = ${partner.id}`;
    expect(mail?.sender).toBeUndefined();
    expect(mail?.html).toContain(">ReviewRelay<");
    expect(mail?.html).not.toContain("url(x)");
  });

  test("is not sent without an address, and the history says so", async () => {
    await answered({ reviewer_email: null });
    expect(await mails()).toEqual([]);
    expect(await outcomeOf("homeowner_notified_of_response")).toBe("no_address");
  });

  test("is not queued by a rejected or repeated request", async () => {
    await answered();
    const events = [posted(`review-${reviews}`)];
    await report(world.api, provider, events);
    expect(await mails()).toHaveLength(2);
    await report(world.api, provider, events);
    const refused = await send(world.api, provider, {
      events: [posted(`review-${reviews}`), posted("unknown")],
    });
    expect(refused.status).toBe(422);
    expect(await mails()).toHaveLength(2);
  });

  test("is queued for each of 500 responses of one request", async () => {
    const ids = Array.from({ length: 250 }, (_, i) => `many-${i}`);
    const fields = { reviewer_email: ADA };
    await report(
      world.api,
      provider,
      ids.map((id) => created(site, id, fields)),
    );
    await report(
      world.api,
      provider,
      [...ids, ...ids].map((id) => posted(id)),
    );
    expect(await mails()).toHaveLength(500);
  });

  test("keeps the address out of every webhook body, history row and log line", async () => {
    const receiver = await Receiver.start();
    stops.push(() => receiver.stop());
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    const { db } = world.database;
    const dispatcher = startDispatcher({ db, box: world.api.deps.box, schedule });
    stops.push(() => dispatcher.stop());
    const review = await answered();
    await moved(review, "accepted");
    await until(
      "delivered",
      async () => receiver.received.length >= 5 && (await queuedFor(db, id)).length === 0,
    );
    const history = await historyOfSite(db, site);
    for (const text of [receiver.received, history, world.api.lines])
      expect(JSON.stringify(text)).not.toContain(ADA);
  });
});

describe("the mail about a flag", () => {
  test("informs the account owner of the new status", async () => {
    const review = await answered({ reviewer: "<Ada>", reviewer_email: null });
    await moved(review, "under_review");
    const [mail, ...more] = await mails();
    expect(more).toEqual([]);
    expect(mail).toMatchObject({
      kind: "flag_status_changed",
      to: account.owner.email,
      subject: "The flag on a review of p1-a1 east is under review",
    });
    expect(mail?.text).toContain("by <Ada> (4 of 5 on");
    expect(mail?.html).toContain("by &lt;Ada&gt; (4 of 5 on");
    expect(mail?.html).toContain("rgb(17,34,51)");
    expect((await latest("flag_status_changed"))?.metadata).toEqual({
      from: "open",
      to: "under_review",
      native_email: "queued",
    });
    expect(world.wakes).toContain("mail");
  });

  test("is not sent for an unchanged or a rejected status", async () => {
    const review = await answered({ reviewer_email: null });
    await moved(review, "accepted");
    await act(review, "flag-status", { status: "accepted" });
    expect((await act(review, "flag-status", { status: "rejected" })).status).toBe(409);
    expect(await mails()).toHaveLength(1);
  });

  test("is not sent if the account has no active owner", async () => {
    const { sql } = world.database.db;
    const token = await world.api.login(account.user.email);
    const review = await answered({ reviewer_email: null });
    await act(review, "flag", { reason: "Spam" }, token);
    await sql`update users set is_active = false where id = ${account.owner.id}`;
    await act(review, "flag-status", { status: "accepted" }, token);
    await sql`update users set is_active = true where id = ${account.owner.id}`;
    expect(await mails()).toEqual([]);
    expect(await outcomeOf("flag_status_changed")).toBe("no_address");
  });
});

describe("a subscription that suppresses native notifications", () => {
  const EVENTS = ["homeowner_notified_of_response", "flag_status_changed"];
  /** Triggers both mails once; returns their results in the history. */
  async function both(): Promise<unknown[]> {
    await moved(await answered(), "accepted");
    return Promise.all(EVENTS.map(outcomeOf));
  }
  const kinds = async () => (await mails()).map(({ kind }) => kind);

  test("stops both mails only while it is active and set to suppress them", async () => {
    const { id } = await world.subscribe({ suppress_native_notifications: true });
    expect(await both()).toEqual(["suppressed", "suppressed"]);
    expect(await kinds()).toEqual([]);
    // The webhooks do not depend on the mails.
    expect((await queuedFor(world.database.db, id)).map(({ event }) => event)).toEqual([
      "review_received",
      "response_post_succeeded",
      "homeowner_notified_of_response",
      "review_flagged",
      "flag_status_changed",
    ]);
    const change = (value: boolean) =>
      world.ask("POST", `/${id}`, { body: { suppress_native_notifications: value } });
    await change(false);
    expect(await both()).toEqual(["queued", "queued"]);
    await change(true);
    expect(await both()).toEqual(["suppressed", "suppressed"]);
    await disable(world, id);
    expect(await both()).toEqual(["queued", "queued"]);
    await world.ask("POST", `/${id}/enable`);
    expect(await both()).toEqual(["suppressed", "suppressed"]);
    await world.ask("DELETE", `/${id}`);
    expect(await both()).toEqual(["queued", "queued"]);
    expect(await kinds()).toEqual(
      Array.from({ length: 3 }, () => ["flag_status_changed", "homeowner_notice"])
        .flat()
        .toSorted(),
    );
  });

  test("applies to all companies of the partner and to no other partner", async () => {
    await world.subscribe({ suppress_native_notifications: true });
    const [one, two] = world.tenants.partners;
    const outcomes: unknown[] = [];
    for (const place of [one.accounts[0], one.accounts[1], two.accounts[0]]) {
      const own = await addProvider(world.database.db, world.api.deps.box, `site-${++reviews}`);
      const siteId = await connectStore(world.database.db, place, { provider: own, store: 1 });
      await report(world.api, own, [
        created(siteId, "a", { reviewer_email: ADA }),
        posted("a", siteId),
      ]);
      outcomes.push(
        (await latest("homeowner_notified_of_response", siteId))?.metadata["native_email"],
      );
    }
    expect(outcomes).toEqual(["suppressed", "suppressed", "queued"]);
    expect(await mails()).toHaveLength(1);
  });

  test("must be immediate: a batch subscription stops nothing", async () => {
    await world.subscribe({
      delivery_kind: "batch",
      batch_interval_hours: 1,
      suppress_native_notifications: true,
    });
    expect(await both()).toEqual(["queued", "queued"]);
  });
});

let world: WebhookWorld;
let provider: TestProvider;
let site = 0;
let reviews = 0;
const ADA = "ada@homeowner.example";

const posted = (id: string, siteId = site) =>
  providerEvent("response.posted", siteId, { external_review_id: id });

const outcomeOf = async (event: string) => (await latest(event))?.metadata["native_email"];

let schedule: Schedule;

let flush: () => Promise<void>;

let close: () => void;

let account: TestAccount;

const stops: (() => Promise<unknown> | void)[] = [];

beforeAll(async () => {
  ({ schedule, flush, close } = await createTestSchedule());
  world = await startWebhooks({ schedule });
  [account] = world.tenants.partners[0].accounts;
  await world.database.db
    .sql`update companies set name = 'A & B <Plumbing>' where id = ${account.id}`;
});

beforeEach(async () => {
  provider = await addProvider(world.database.db, world.api.deps.box, `site-${++reviews}`);
  site = await connectStore(world.database.db, account, { provider });
  world.wakes.length = 0;
});

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
  const { sql } = world.database.db;
  await sql`delete from mails`;
  await sql`delete from outbox`;
  await sql`delete from outbox_offsets`;
  await sql`delete from outbox_sequences`;
  await sql`delete from incidents`;
  await sql`delete from webhook_subscriptions`;
  await flush();
});

afterAll(async () => {
  await world.stop();
  close();
});

interface QueuedMail extends MailMessage {
  readonly kind: string;
}

async function mails(): Promise<QueuedMail[]> {
  const rows = await world.database.db.sql<{ id: string; kind: string; sealed: string }[]>`
    select id, kind, sealed_message as sealed from mails where state = 'queued' order by created_at, kind`;
  return rows.map(({ id, kind, sealed }) => ({
    kind,
    ...openMail(world.api.deps.box, id, sealed),
  }));
}

/** Adds a review with an address, a response of the account, and its posting by the site. */
async function answered(fields: Record<string, unknown> = {}, body?: string): Promise<number> {
  const external = `review-${++reviews}`;
  await report(world.api, provider, [created(site, external, { reviewer_email: ADA, ...fields })]);
  const id = await reviewIdOf(world.database.db, external);
  if (body !== undefined) await act(id, "response", { body });
  await report(world.api, provider, [posted(external)]);
  return id;
}

function act(id: number, action: string, body: unknown, token = world.tokens.account) {
  return world.api.call("POST", `/account/reviews/${id}/${action}`, { token, body });
}

async function moved(id: number, status: string): Promise<void> {
  await act(id, "flag", { reason: "Spam" });
  await act(id, "flag-status", { status });
}

async function latest(event: string, siteId = site): Promise<HistoryRow | undefined> {
  return (await historyOfSite(world.database.db, siteId)).findLast((row) => row.event === event);
}
