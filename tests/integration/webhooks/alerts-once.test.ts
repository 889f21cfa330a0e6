import { afterAll, beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { fieldsOf } from "../../../src/lib/fields.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { newSecret } from "../../../src/lib/secrets.ts";
import { ALERT_KINDS, alertSecretAssociatedData } from "../../../src/outbox/alert.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { headerOf, MailServer, type Treatment } from "../../support/network/mail-server.ts";
import { insertSubscription, insertTenant, record, reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);
const server = fixture(() => MailServer.start(() => treatment));
const hooks = fixture(() => Receiver.start(() => 410));
const alertHooks = fixture(() => Receiver.start());

test("each threshold raises one alert, although two dispatchers are killed between writing and sending", async () => {
  const tenant = await insertTenant(database.db);
  const { partnerId } = tenant;
  const settingsId = ulid();
  await database.db.sql`
    insert into alert_settings (id, partner_id, recipients, confirmed_recipients, kinds, oldest_waiting_minutes,
                                digest_minutes, webhook_url, sealed_secret, secret_fingerprint, updated_at)
    values (${settingsId}, ${partnerId}, ${["ops@partner.example"]}, ${["ops@partner.example"]}, ${[...ALERT_KINDS]}, 15,
            0, ${alertHooks.url}, ${box.seal(newSecret(), alertSecretAssociatedData(partnerId, settingsId))}, '0123456789abcdef', now())`;
  const { subscriptionId: id, shard } = await insertSubscription(
    { db: database.db, box },
    { partnerId, url: hooks.url },
  );
  const fail = async (events: number) => {
    const actions = Array.from({ length: events }, () => reviewAction(tenant));
    await stores.schedule.wake(await record(database.db, actions));
  };
  const [one, two] = dispatchers;
  one?.start();
  two?.start();

  // The mail server and the receiver of alerts never answer, so that both dispatchers are killed while they send.
  treatment = "hang";
  alertHooks.answer = () => "hang";
  await fail(5);
  await until(
    "the first alert under way",
    () => server.asked.length > 0 && alertHooks.received.length > 0,
  );
  await Promise.all([one?.kill(), two?.kill()]);
  treatment = "accept";
  alertHooks.answer = () => 200;
  await endClaims();
  one?.start();
  two?.start();
  await until("the first mail", () => mailed() === 1);

  await fail(5);
  await until("the second alert", () => mailed() === 2);
  await one?.kill();
  one?.start();
  await fail(8);
  await until("the third alert", () => mailed() === 3);
  await two?.kill();
  await fail(2);
  await until("the disabling", () => mailed() === 4);

  hooks.answer = () => 200;
  await fail(1);
  await database.db.sql`
    update webhook_subscriptions
       set state = 'active', consecutive_failure_count = 0, disabled_at = null, disabled_reason = null
     where id = ${id}`;
  await stores.schedule.wake([{ subscriptionId: id, shard }]);
  await until("the recovery", () => mailed() === 5);
  await endClaims();
  await until("all posts", async () => (await count("webhook_state = 'sent'")) === 5);

  const subjects = new Map(
    server.received.map((mail) => [
      headerOf(mail, "Message-ID"),
      decoded(headerOf(mail, "Subject")),
    ]),
  );
  expect([...subjects.values()]).toEqual([
    'ReviewRelay: 5 consecutive failures of webhook subscription "Test"',
    'ReviewRelay: 10 consecutive failures of webhook subscription "Test"',
    'ReviewRelay: 18 consecutive failures of webhook subscription "Test"',
    'ReviewRelay: Webhook subscription "Test" is disabled',
    'ReviewRelay: Webhook subscription "Test" has recovered',
  ]);
  const kinds = new Map(
    alertHooks.received.map(({ body, headers }) => [
      headers["x-svc-delivery"],
      String(fieldsOf(JSON.parse(body))["alert"]),
    ]),
  );
  // A POST that was in flight is repeated with the same id, and each kind has only one id.
  expect([...kinds.values()].toSorted()).toEqual([
    "disabled",
    "failures_10",
    "failures_18",
    "failures_5",
    "recovered",
  ]);
}, 240_000);

let treatment: Treatment = "accept";

const key = crypto.getRandomValues(new Uint8Array(32));

const box = createSecretBox({ current: key });

let dispatchers: DispatcherProcess[];

beforeAll(async () => {
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: stores.prefix,
    MASTER_KEY: Buffer.from(key).toString("base64"),
    SMTP_URL: server.url,
  };
  dispatchers = [new DispatcherProcess(env), new DispatcherProcess(env)];
});

afterAll(async () => {
  await Promise.all(dispatchers.map((one) => one.stop()));
});

/** Counts distinct mails: one that was accepted but not committed is repeated with the same id. */
const mailed = () => new Set(server.messageIds).size;

const count = async (where: string) =>
  (await database.db.sql.unsafe(`select from alerts where ${where}`)).length;

/** Decodes a header in the Q encoding of RFC 2047. */
const decoded = (text: string) =>
  text
    .replaceAll(/\?=\s*=\?UTF-8\?Q\?/g, "")
    .replaceAll(/=\?UTF-8\?Q\?|\?=/g, "")
    .replaceAll("_", " ")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
      String.fromCodePoint(Number.parseInt(hex, 16)),
    );

/** Ends the claims of killed processes on POSTs and mails, which would otherwise last for a while. */
const endClaims = async () => {
  await database.db.sql`update alerts set webhook_due_at = now() where webhook_state = 'queued'`;
  await database.db.sql`update mails set due_at = now() where state = 'queued'`;
};
