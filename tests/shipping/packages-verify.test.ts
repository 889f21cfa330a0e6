// Gives deliveries of a real dispatcher, and all vectors, to `verify` of each package.
import { beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { createHmac } from "node:crypto";
import { join } from "node:path";

import type { Vector } from "../../scripts/vectors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { verify, verifyMinimal } from "../../src/sdk/typescript/src/index.ts";
import { createTestSchedule, startDispatcher } from "../support/dispatch.ts";
import { fixture } from "../support/fixture.ts";
import { Receiver, until, type Received } from "../support/network/receiver.ts";
import { PACKAGES, runProgram } from "../support/processes/packages.ts";
import { startWebhooks } from "../support/webhooks.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { lacks } from "../support/needs.ts";

const LANGUAGES: readonly Language[] = [
  { name: "TypeScript", needs: [], verifyAll: verifyInTypescript },
  ...PACKAGES.map((one) => ({
    ...one,
    verifyAll: (cases: readonly Case[]) =>
      runProgram<(string | null)[]>(one, PROGRAMS[one.name], cases),
  })),
];

for (const { name, needs, verifyAll } of LANGUAGES) {
  const title = `the package in ${name} accepts real deliveries and refuses forged and old ones`;
  test.skipIf(lacks(...needs))(title, async () => {
    const cases = [...ofDeliveries, ...ofVectors(), ...ofSecrets()];
    const ids = await verifyAll(cases);
    expect(cases.map((one, i) => [one.name, ids[i] ?? null])).toEqual(
      cases.map((one) => [one.name, expectedOf(one)]),
    );
  });
}

/** A delivery as a receiver has it, at a time in Unix seconds. */
interface Case {
  readonly name: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly now: number;
  readonly isMinimal: boolean;
  readonly isAccepted: boolean;
  /** Whether the secrets are no secrets, which is an error of the caller. */
  readonly isWrongSecret?: boolean;
}

interface Language {
  readonly name: string;
  readonly needs: readonly NeedName[];
  /** Returns the id of the event of each delivery, null if it is refused, and `WRONG_SECRET` if a secret is none. */
  readonly verifyAll: (cases: readonly Case[]) => Promise<(string | null)[]>;
}

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));
const receiver = fixture(() => Receiver.start());
let ofDeliveries: readonly Case[];

beforeAll(async () => {
  world.clock.set(systemClock.now());
  const { db } = world.database;
  const { box } = world.api.deps;
  const dispatcher = startDispatcher({ db, box, schedule: stores.schedule });
  ofDeliveries = await collectDeliveries();
  await dispatcher.stop();
});

/** Has events delivered: plain, of Standard Webhooks, minimal, and before, during and after a rotation. */
async function collectDeliveries(): Promise<Case[]> {
  const plain = await world.subscribe({ webhook_url: receiver.url });
  const first = await nextDelivery();
  const whole = { ...first, secrets: [plain.secret], isMinimal: false };
  const { body: rotated } = await world.ask("POST", `/${plain.id}/rotate-secret`, {
    body: { grace_period_hours: 1 },
  });
  const next = String(rotated["secret"]);
  const grace = { ...(await nextDelivery()), isMinimal: false };
  const standard = await world.subscribe({ webhook_url: receiver.url, standard_webhooks: true });
  const signed = { ...(await nextDelivery()), secrets: [standard.secret], isMinimal: false };
  const withoutTime = { ...signed.headers };
  delete withoutTime["webhook-timestamp"];
  const other = { ...signed.headers, "webhook-timestamp": String(signed.now + 1) };
  const minimal = await world.subscribe({ webhook_url: receiver.url, payload_mode: "minimal" });
  const small = { ...(await nextDelivery()), secrets: [minimal.secret], isMinimal: true };
  const key = `whsec_${Buffer.from(standard.secret).toString("base64")}`;
  const changed = (one: string) => one.replace('"event"', '"Event"');
  const accepted = [
    { ...whole, name: "a delivery" },
    { ...whole, name: "297 s later", now: whole.now + 297 },
    { ...whole, name: "one of several secrets", secrets: ["another secret", plain.secret] },
    { ...grace, name: "a rotation, with the previous secret", secrets: [plain.secret] },
    { ...grace, name: "a rotation, with the new secret", secrets: [next] },
    { ...grace, name: "a rotation, with both secrets", secrets: [next, plain.secret] },
    { ...signed, name: "Standard Webhooks" },
    { ...signed, name: "a secret as whsec_", secrets: [key] },
    { ...signed, name: "without the timestamp, by the other header", headers: withoutTime },
    { ...small, name: "a minimal body" },
    { ...small, name: "a minimal body an hour later, which has no time", now: small.now + 3_600 },
  ].map((one) => ({ ...one, isAccepted: true }));
  const refused = [
    { ...whole, name: "303 s later", now: whole.now + 303 },
    { ...whole, name: "from the future", now: whole.now - 303 },
    { ...whole, name: "another secret", secrets: [next] },
    { ...whole, name: "no secret", secrets: [] },
    { ...whole, name: "a changed byte", body: changed(whole.body) },
    { ...whole, name: "no signature", headers: { "x-svc-event": "review_received" } },
    { ...signed, name: "Standard Webhooks 303 s later", now: signed.now + 303 },
    { ...signed, name: "a moved timestamp, although the other header fits", headers: other },
    { ...signed, name: "a changed byte of Standard Webhooks", body: changed(signed.body) },
  ].map((one) => ({ ...one, isAccepted: false }));
  return [...accepted, ...refused];
}

async function nextDelivery(): Promise<Pick<Received, "body" | "headers"> & { now: number }> {
  const count = receiver.received.length;
  await world.emit(1);
  await until("a delivery", () => receiver.received.length > count);
  const { body, headers } = receiver.received[count] ?? { body: "", headers: {} };
  return { body, headers, now: Math.round(systemClock.now().getTime() / 1_000) };
}

/** The vectors, whose deliveries are of 2026-06-01. */
function ofVectors(): Case[] {
  const vectors = join(import.meta.dir, "../vectors");
  const files = readdirSync(vectors, { recursive: true, encoding: "utf8" });
  return files
    .filter((file) => /\/.*\.json$/.test(file))
    .map((file) => {
      const vector: Vector = JSON.parse(readFileSync(join(vectors, file), "utf8"));
      const { name, secret, headers, body, valid } = vector;
      const isMinimal = !body.includes('"delivered_at"');
      const now = isMinimal ? 0 : Math.round(Date.parse(JSON.parse(body).delivered_at) / 1_000);
      return { name, body, headers, secrets: [secret], now, isMinimal, isAccepted: valid };
    });
}

const WRONG_SECRET = "wrong secret";

/** Returns the cases of secrets in the form of Standard Webhooks, with a signature of whatever a decoder reads in them. */
function ofSecrets(): Case[] {
  const [{ body, now } = { body: "", now: 0 }] = ofVectors().filter(
    (one) => one.isAccepted && !one.isMinimal,
  );
  const signedBy = (secret: string, key: Buffer) => {
    const hmac = (text: string) => createHmac("sha256", key).update(text);
    const standard = {
      "webhook-id": "01JWNB9PR0ZV8X2D3F4G5H6J00",
      "webhook-timestamp": String(now),
      "webhook-signature": `v1,${hmac(`01JWNB9PR0ZV8X2D3F4G5H6J00.${now}.${body}`).digest("base64")}`,
    };
    const headers = { ...standard, "x-svc-signature": `sha256=${hmac(body).digest("hex")}` };
    return {
      name: `the secret ${JSON.stringify(secret)}`,
      body,
      headers,
      secrets: [secret],
      now,
      isMinimal: false,
    };
  };
  const signed = (secret: string) =>
    signedBy(secret, Buffer.from(secret.replace("whsec_", ""), "base64"));
  const whole = "whsec_c2VjcmV0fj8/fj8/"; // secret~??~??
  const accepted = ["whsec_MTIzNDU2Nzg=", "whsec_MTIzNDU2Nzg5MA==", whole].map(signed);
  const wrong = [
    "whsec_",
    "whsec_%%%",
    "whsec_=",
    "whsec_MTIzNDU2Nw==",
    "whsec_c2VjcmV0fj8_fj8_",
    "whsec_c2Vj cmV0fj8/fj8/",
    "whsec_c2VjcmV0fj8/\nfj8/",
    `${whole}\n`,
    `${whole}=`,
    "whsec_MTIzNDU2Nzg",
    "whsec_MTIzNDU2Nzh=",
    "whsec_MTIzNDU2Nzg==",
    `${whole}é`,
  ].map(signed);
  const [good] = [signed(whole)];
  const names = Object.keys(good.headers).filter((name) => name.startsWith("webhook-"));
  const without = (left: readonly string[]) => ({
    ...good,
    name: `a secret as whsec_ without ${left.join(", ")}`,
    headers: Object.fromEntries(
      Object.entries(good.headers).filter(([name]) => !left.includes(name)),
    ),
  });
  const refused = [without(names), ...names.map((name) => without([name]))];
  const mixed = {
    ...without(names),
    name: "a plain secret beside one as whsec_",
    secrets: [whole, "secret~??~??"],
  };
  const emptied = {
    ...good,
    name: "a secret as whsec_ with empty headers",
    headers: { ...good.headers, ...Object.fromEntries(names.map((name) => [name, ""])) },
  };
  const plain = {
    ...emptied,
    name: "a plain secret with empty headers",
    secrets: ["secret~??~??"],
  };
  const second = { ...good, name: "a wrong second secret", secrets: [whole, "whsec_"] };
  return [
    ...[...accepted, mixed, plain].map((one) => ({ ...one, isAccepted: true })),
    ...[...refused, emptied].map((one) => ({ ...one, isAccepted: false })),
    ...[...wrong, second, { ...signedBy("", Buffer.of()), name: "an empty secret" }].map((one) => ({
      ...one,
      isAccepted: false,
      isWrongSecret: true,
    })),
  ];
}

function expectedOf(one: Case): string | null {
  if (one.isWrongSecret) return WRONG_SECRET;
  return one.isAccepted ? idOf(one) : null;
}

const idOf = ({ body }: Case): string => JSON.parse(body).event_id;

async function verifyInTypescript(cases: readonly Case[]): Promise<(string | null)[]> {
  return cases.map(({ body, headers, secrets, now, isMinimal }) => {
    const check = isMinimal ? verifyMinimal : verify;
    try {
      return check(body, new Headers(headers), secrets, { now: now * 1_000 }).event_id;
    } catch (error) {
      return error instanceof TypeError ? WRONG_SECRET : null;
    }
  });
}

const PYTHON = `
import json, sys
from reviewrelay import SignatureError, verify, verify_minimal

def event_id(case):
    check = verify_minimal if case["isMinimal"] else verify
    try:
        return check(case["body"].encode(), case["headers"], case["secrets"], now=case["now"])["event_id"]
    except SignatureError:
        return None
    except ValueError as error:
        return "wrong secret" if "secret" in str(error) else None

print(json.dumps([event_id(case) for case in json.load(sys.stdin)]))
`;

const PHP = `
$ids = array_map(function ($case) {
    try {
        $webhook = new ReviewRelay\\Webhook($case['secrets']);
        $event = $webhook->verify($case['body'], $case['headers'], $case['now']);
        $fields = json_decode($case['body'], true);
        return array_intersect_key((array) $event, $fields) == $fields ? $event->event_id : 'a field is missing';
    } catch (ReviewRelay\\SignatureError) {
        return null;
    } catch (InvalidArgumentException) {
        return 'wrong secret';
    }
}, json_decode(file_get_contents('php://stdin'), true));
echo json_encode($ids);
`;

const GO = `package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"reviewrelay"
)

type Case struct {
	Body    string
	Headers map[string]string
	Secrets []string
	Now     int64
}

func main() {
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	ids := make([]*string, len(cases))
	for i, one := range cases {
		header := http.Header{}
		for name, value := range one.Headers {
			header.Set(name, value)
		}
		now := func() time.Time { return time.Unix(one.Now, 0) }
		event, err := reviewrelay.Verifier{Secrets: one.Secrets, Now: now}.Verify([]byte(one.Body), header)
		if err == nil {
			ids[i] = &event.EventID
			strict := json.NewDecoder(strings.NewReader(one.Body))
			strict.DisallowUnknownFields()
			if err := strict.Decode(&reviewrelay.Event{}); err != nil {
				panic(err)
			}
		} else if !errors.Is(err, reviewrelay.ErrSignature) && !errors.Is(err, reviewrelay.ErrTooOld) {
			wrong := "wrong secret"
			ids[i] = &wrong
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(ids); err != nil {
		panic(err)
	}
}
`;

const PROGRAMS = { Python: PYTHON, PHP, Go: GO };
