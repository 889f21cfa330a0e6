import { afterEach, expect, test } from "bun:test";
import type { TlsOptions } from "node:tls";

import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { openMail } from "../../../src/outbox/mail.ts";
import { type TlsReason, tlsWords } from "../../../src/outbox/tls-reason.ts";
import { detectIncidents } from "../../support/alerts.ts";
import { createTestSchedule, silentLog, startDispatcher } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";
import { CA, EXPIRED, HOOK_TEST, SELF_SIGNED } from "../../support/network/certificates.ts";
import { startProxy } from "../../support/network/proxy.ts";
import { startRawReceiver } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";
import {
  LEAF_ALONE,
  ROOT,
  serverOf,
  VALID_CHAIN,
  WORTHLESS,
} from "../../support/network/worthless-certificates.ts";
import { startWebhooks } from "../../support/webhooks.ts";

// Contract 7.13: wherever the API or a mail tells that an attempt failed with `tls`, it tells why.

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));

test.each([
  ["expired", EXPIRED, "The certificate has expired", false],
  ["expired", EXPIRED, "The certificate has expired", true],
  ["wrong_name", HOOK_TEST, "The certificate does not name this host", false],
  ["self_signed", SELF_SIGNED, "The certificate is self-signed", true],
  ["unknown_issuer", serverOf(VALID_CHAIN), "from an unknown authority", false],
  ["chain_incomplete", serverOf(LEAF_ALONE), "The certificate chain is incomplete", true],
  ["handshake", { ...HOOK_TEST, maxVersion: "TLSv1.1" }, "The TLS handshake failed", false],
] as const)("%s is told by the API and the mail", (...[reason, tls, words, isProxied]) =>
  tellsReason(reason, tls, words, { isProxied }),
);

// RFC 9525: a common name does not count, and the mail says so.
test("wrong_name is told of the right host in the common name alone", async () => {
  const cert = WORTHLESS["with its name only in the subject"] ?? "";
  const words = "The certificate does not name this host";
  await tellsReason("wrong_name", serverOf(cert), words, {
    host: "hook.test",
    http: { ca: [ROOT], lookup: async () => ["127.0.0.1"] },
  });
});

interface Reached {
  readonly isProxied?: boolean;
  readonly host?: string;
  readonly http?: Partial<HttpClientOptions>;
}

async function tellsReason(
  reason: TlsReason,
  tls: TlsOptions,
  words: string,
  { isProxied = false, host = "127.0.0.1", http: overrides }: Reached,
) {
  const receiver = await startRawReceiver("", { tls: { minVersion: "TLSv1", ...tls } });
  const proxy = await startProxy();
  const { db } = world.database;
  const { box } = world.api.deps;
  const http = {
    ca: [CA],
    proxy: isProxied ? parseProxyUrl(`http://127.0.0.1:${proxy.port}`) : undefined,
    ...overrides,
  };
  const options = { db, box, schedule: stores.schedule, http, retryDelaysMs: [1, 1, 1] };
  const dispatcher = startDispatcher(options);
  started.push(receiver, proxy, dispatcher);
  world.clock.set(systemClock.now());
  const { id } = await world.subscribe({ webhook_url: `https://${host}:${receiver.port}/hook` });
  await db.sql`update webhook_subscriptions set consecutive_failure_count = 4 where id = ${id}`;
  const [eventId] = await world.emit(1);
  const get = async (path: string) => (await world.ask("GET", `/${id}${path}`)).body;
  await until("the failure", async () => (await get(""))["consecutive_failure_count"] === 5);

  const failure = { status_code: null, error_code: "tls", tls_reason: reason };
  const attempt = expect.objectContaining(failure);
  expect((await get(`/deliveries/${eventId}`))["attempts"]).toEqual(
    Array.from({ length: 4 }, () => attempt),
  );
  expect((await get("/deliveries"))["data"]).toEqual(Array.from({ length: 4 }, () => attempt));
  await db.sql`update webhook_subscriptions set consecutive_failure_count = 1 where id = ${id}`;
  expect(await get("/health")).toMatchObject({ first_failure: failure });
  expect(await get("/incident")).toMatchObject({
    last_answer: failure,
    causes: [{ ...failure, attempts: 4 }],
  });
  await db.sql`update webhook_subscriptions set consecutive_failure_count = 5 where id = ${id}`;
  expect(proxy.requests).toHaveLength(isProxied ? 4 : 0);
  expect(receiver.requests).toEqual([]);

  const config = { serverRoot: "https://reviews.example" };
  await detectIncidents({ db, clock: systemClock, log: silentLog, box, config }, false);
  const [alert] = await db.sql`select cause from alerts where subscription_id = ${id}`;
  expect(alert?.["cause"]).toMatchObject({ first_failure: failure, last_failure: failure });
  const mails = await db.sql<{ id: string; sealed: string }[]>`
    select id, sealed_message as sealed from mails order by id`;
  expect(mails.length).toBeGreaterThan(0);
  for (const mail of mails) {
    const { text } = openMail(box, mail.id, mail.sealed);
    expect(text).toMatch(new RegExp(`First failure: .*no response \\(.*${words}\\)`));
    expect(text).toContain(tlsWords(reason)?.advice ?? "no advice");
  }
}

const started: { stop(): unknown }[] = [];

afterEach(async () => {
  for (const one of started.splice(0).toReversed()) await one.stop();
  await world.database.db.sql`truncate alerts, incidents, mails`;
});
