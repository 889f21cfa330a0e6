// Deliveries of a real dispatcher, checked by published libraries of Standard Webhooks (contract 7.18).
import { afterEach, describe, expect, test } from "bun:test";

import { ulid as newUlid } from "ulid";

import { composeRequest } from "../../dispatcher/delivery/compose.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newSecret, standardSecret } from "../../src/lib/secrets.ts";
import {
  checkEndpoint,
  type CheckAnswer,
  type CheckRequest,
} from "../../src/outbox/endpoint-check.ts";
import { entry, subscription } from "../support/actor.ts";
import { createTestSchedule, startDispatcher } from "../support/dispatch.ts";
import { fixture } from "../support/fixture.ts";
import { ExactReceiver } from "../support/network/exact-receiver.ts";
import { until } from "../support/network/receiver.ts";
import { VERIFIERS } from "../support/processes/standard-webhooks.ts";
import { startWebhooks } from "../support/webhooks.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() =>
  startWebhooks({ schedule: stores.schedule, config: { batchHourMs: HOUR_MS } }),
);

/** Timeout of a test. The first compilation of Go's HTTP package takes a while. */
const PATIENCE_MS = 180_000;

for (const [language, load] of Object.entries(VERIFIERS)) {
  const verify = load();
  test.skipIf(verify === undefined)(
    `the library in ${language} accepts deliveries, and refuses a changed byte, an old timestamp and a foreign secret`,
    async () => {
      if (verify === undefined) return;
      const { id, secret } = await start();
      await world.emit(1);
      await ask("POST", `/${id}/test`);
      await until("both", () => receiver.requests.length === 2);
      const [event = NOTHING, probe = NOTHING] = receiver.requests.map(partsOf);
      const { headers, body } = event;
      const [old, recent] = [signedAgo(secret, 301_000), signedAgo(secret, 240_000)];
      const cases = [
        ["an event", event, true],
        ["a test", probe, true],
        ["a changed byte", { headers, body: body.replace('"', "'") }, false],
        ["an added byte", { headers, body: `${body} ` }, false],
        ["another id", { headers: { ...headers, "webhook-id": "X" }, body }, false],
        ["a moved timestamp", { headers: { ...headers, "webhook-timestamp": now() }, body }, false],
        ["a timestamp of four minutes ago", recent, true],
        ["a timestamp of more than five minutes ago", old, false],
      ] as const;
      const given = cases.map(([name, parts, isAccepted]) => ({
        name,
        isAccepted,
        ...parts,
        secret: standardSecret(secret),
      }));
      const foreign = { secret: standardSecret(newSecret()), isAccepted: false };
      const all = [...given, { ...event, name: "a foreign secret", ...foreign }];
      const verdicts = await verify(all);
      expect(all.map(({ name }, i) => [name, verdicts[i]])).toEqual(
        all.map(({ name, isAccepted }) => [name, isAccepted]),
      );

      const { body: rotated } = await ask("POST", `/${id}/rotate-secret`, {
        grace_period_hours: 1,
      });
      await world.emit(1);
      await until("one with two signatures", () => receiver.requests.length === 3);
      await ask("DELETE", `/${id}/previous-secret`);
      await world.emit(1);
      await until("one with one signature", () => receiver.requests.length === 4);
      const [both = NOTHING, one = NOTHING] = receiver.requests.slice(2).map(partsOf);
      const [first, second] = [standardSecret(secret), String(rotated["standard_webhooks_secret"])];
      expect(
        await verify([
          { ...both, secret: first },
          { ...both, secret: second },
          { ...one, secret: first },
          { ...one, secret: second },
        ]),
      ).toEqual([true, true, false, true]);
      expect(
        [both, one].map((some) => some.headers["webhook-signature"]?.split(" ").length),
      ).toEqual([2, 1]);
    },
    PATIENCE_MS,
  );
}

for (const [language, load] of Object.entries(VERIFIERS)) {
  const verify = load();
  test.skipIf(verify === undefined)(
    `a check finds no fault of a receiver that uses the library in ${language}`,
    async () => {
      if (verify === undefined) return;
      const secret = newSecret();
      const settings = { ...subscription, secret, previousSecret: null, standardWebhooks: true };
      const send = async ({ headers, body }: CheckRequest): Promise<CheckAnswer> => {
        const [isAccepted] = await verify([{ headers, body, secret: standardSecret(secret) }]);
        const nothing = { errorCode: null, tlsReason: null, certificateEndsAt: null };
        return { statusCode: isAccepted === true ? 204 : 401, durationMs: 1, ...nothing };
      };
      const now = () => systemClock.now();
      const findings = await checkEndpoint(
        { ...settings, webhookUrl: "http://hook.example/", payloadMode: "minimal" },
        { now, newUlid, send },
      );
      expect(findings?.filter(({ passed }) => passed !== true)).toEqual([]);
    },
    PATIENCE_MS,
  );
}

describe("the headers of Standard Webhooks", () => {
  test("follow those of the specification, which stay as they are, from the next attempt after a change", async () => {
    const { id } = await start({ standard_webhooks: false });
    for (const [i, next] of [true, false, false].entries()) {
      await world.emit(1);
      await until("the delivery", () => receiver.requests.length === i + 1);
      await ask("PATCH", `/${id}`, { standard_webhooks: next });
    }
    const [off = [], on = [], offAgain = []] = receiver.requests.map((one) =>
      Object.keys(partsOf(one).headers),
    );
    expect(off).toEqual([
      "Host",
      "Content-Type",
      "User-Agent",
      "X-SVC-Event",
      "X-SVC-Delivery",
      "X-SVC-Attempt",
      "X-SVC-Signature",
      "Content-Length",
    ]);
    expect(offAgain).toEqual(off);
    expect(on).toEqual(off.toSpliced(-1, 0, ...ADDED));
  });

  test("have the event id and the time of the attempt, which a retry changes, and are shown with it", async () => {
    const { id } = await start();
    receiver.answer = (_, before) => (before === 0 ? 500 : 200);
    const [eventId = ""] = await world.emit(1);
    await until("the retry", () => receiver.requests.length === 2);
    await ask("POST", `/${id}/rotate-secret`, { grace_period_hours: 1 });
    await ask("POST", `/${id}/deliveries/${eventId}/redeliver`);
    await until("the redelivery", () => receiver.requests.length === 3);
    await ask("POST", `/${id}/test`);
    await until("the records", async () => (await attemptsOf(id)).length >= 4);
    const shown = (await attemptsOf(id)).toReversed();
    expect(shown.map(onTheLine).toSorted()).toEqual(receiver.requests.toSorted());
    const ofEvent = shown.filter((one) => one.event_id === eventId);
    expect(ofEvent.map((one) => one.request_headers["webhook-id"])).toEqual(
      ofEvent.map(() => eventId),
    );
    const seconds = ofEvent.map((one) => Number(one.request_headers["webhook-timestamp"]));
    expect(seconds).toEqual(ofEvent.map((one) => Math.floor(Date.parse(one.started_at) / 1_000)));
    expect(seconds[1]).toBeGreaterThan(seconds[0] ?? Infinity);
  });

  test("are in each event of a batch, under its own event id", async () => {
    await start({ delivery_kind: "batch", batch_interval_hours: 1 });
    const eventIds = await world.emit(2);
    await until("both", () => receiver.requests.length === 2);
    const headers = receiver.requests.map((one) => partsOf(one).headers);
    expect(headers.map((one) => one["webhook-id"])).toEqual(eventIds);
    expect(headers.map((one) => one["X-SVC-Delivery"])).toEqual(eventIds);
  });
});

test("the secret is shown as whsec_ and base64 wherever it is shown, and nowhere without the option", async () => {
  const { id, secret, standard } = await start();
  expect(standard).toBe(`whsec_${btoa(secret)}`);
  const { body: shown } = await ask("POST", `/${id}/secret`);
  expect(shown).toMatchObject({ secret, standard_webhooks_secret: standard });
  const { body: rotated } = await ask("POST", `/${id}/rotate-secret`);
  expect(rotated["standard_webhooks_secret"]).toBe(`whsec_${btoa(String(rotated["secret"]))}`);
  for (const path of [`/${id}`, ""]) {
    const { text } = await ask("GET", path);
    expect(text).toContain('"standard_webhooks":true');
    expect(text).not.toContain("whsec_");
  }
  await ask("PATCH", `/${id}`, { standard_webhooks: false });
  const answers = [await ask("POST", `/${id}/secret`), await ask("POST", `/${id}/rotate-secret`)];
  expect(answers.map(({ body }) => body["standard_webhooks_secret"])).toEqual([null, null]);
});

const HOUR_MS = 1_000;
const ADDED = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const NOTHING = { headers: {} as Record<string, string>, body: "" };

let receiver: ExactReceiver;
const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

async function start(fields: Readonly<Record<string, unknown>> = {}) {
  receiver = await ExactReceiver.start();
  const { db } = world.database;
  const { box } = world.api.deps;
  // The retry comes in another second, so that its timestamp differs.
  const options = { retryDelaysMs: [1_000, 10, 10], batchHourMs: HOUR_MS };
  started.push(startDispatcher({ db, box, schedule: stores.schedule, ...options }), receiver);
  // The fake clock stands still, unlike that of the dispatcher, so it is set to the present time.
  world.clock.set(systemClock.now());
  const { id, secret } = await world.subscribe({
    webhook_url: receiver.url,
    standard_webhooks: true,
    ...fields,
  });
  const { body } = await ask("POST", `/${id}/secret`);
  return { id, secret, standard: body["standard_webhooks_secret"] };
}

const ask = (method: string, path: string, body?: unknown) => world.ask(method, path, { body });

const now = () => String(Math.floor(Date.now() / 1_000) + 1);

/** Composes the request of an attempt that began in the past, as the dispatcher does. */
function signedAgo(secret: string, ms: number) {
  const one = entry(1);
  if (one.facts === undefined) throw new Error("The entry of the fixture has no body.");
  const settings = { ...subscription, secret, standardWebhooks: true };
  const { headers, body } = composeRequest(one, one.facts, settings, new Date(Date.now() - ms));
  return { headers, body };
}

/** Parses a request into its headers, in their order, and its body. */
function partsOf(request: string) {
  const end = request.indexOf("\r\n\r\n");
  const lines = request.slice(0, end).split("\r\n").slice(1);
  const headers = Object.fromEntries(lines.map((line) => line.split(": ", 2)));
  return { headers: headers as Record<string, string>, body: request.slice(end + 4) };
}

interface Shown {
  readonly event_id: string;
  readonly started_at: string;
  readonly request_headers: Readonly<Record<string, string>>;
  readonly request_body: string;
}

async function attemptsOf(id: string): Promise<Shown[]> {
  return (await ask("GET", `/${id}/deliveries`)).body["data"] as Shown[];
}

/** Renders a shown request as the bytes that are sent. */
function onTheLine({ request_headers: headers, request_body: body }: Shown): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /hook HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
