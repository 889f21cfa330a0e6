import { createHmac } from "node:crypto";

import { describe, expect, test } from "bun:test";

import { Webhook } from "standardwebhooks";
import { ulid } from "ulid";

import { addMs, fromMs } from "../../../src/lib/clock.ts";
import { standardSecret } from "../../../src/lib/secrets.ts";
import {
  explainFinding,
  type Finding,
  FINDING_RULES,
  hasPassed,
} from "../../../src/outbox/check-findings.ts";
import {
  checkEndpoint,
  type CheckAnswer,
  type CheckedEndpoint,
  type CheckRequest,
  MARGIN_MS,
} from "../../../src/outbox/endpoint-check.ts";

const NOW = new Date("2026-06-01T12:00:00.000Z");
const DAY_MS = 86_400_000;
const [SECRET, FORMER] = ["new-secret-of-the-test", "old-secret-of-the-test"];
const HTTP = {
  partnerId: 7,
  webhookUrl: "http://hook.example/",
  payloadMode: "full",
  standardWebhooks: false,
  secret: SECRET,
  previousSecret: null,
  headers: null,
} as const satisfies CheckedEndpoint;
const STANDARD = { ...HTTP, standardWebhooks: true } as const;
const HTTPS = { ...HTTP, webhookUrl: "https://hook.example/" } as const;
const ROTATING = { ...HTTP, previousSecret: FORMER } as const;

describe("a correct receiver has no finding", () => {
  test.each([
    ["plain", HTTP],
    ["with minimal bodies", { ...HTTP, payloadMode: "minimal" as const }],
    ["with Standard Webhooks", STANDARD],
    ["with https", HTTPS],
    ["with the new secret in a grace period", ROTATING],
    ["with both secrets", { ...STANDARD, previousSecret: FORMER }],
  ])("%s", async (_, endpoint) => {
    const { findings } = await run(endpoint, correct());
    expect(findings.filter(({ passed }) => passed !== true)).toEqual([]);
    expect(hasPassed(findings)).toBe(true);
    const codes = FINDING_RULES.map(({ code }) => code);
    const positions = findings.map(({ code }) => codes.indexOf(code));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  });
});

test("every request has the headers of the subscription after ours", async () => {
  const judge = correct();
  const sent: string[] = [];
  const endpoint = { ...HTTP, headers: { "X-Gateway-Key": "gateway-key-of-the-test" } };
  const { findings } = await run(endpoint, (request) => {
    sent.push(Object.entries(request.headers).at(-1)?.join() ?? "");
    return judge(request);
  });
  expect(hasPassed(findings)).toBe(true);
  expect(sent.length).toBe(8);
  expect(new Set(sent)).toEqual(new Set(["X-Gateway-Key,gateway-key-of-the-test"]));
});

describe("a receiver that is wrong in one way has that finding alone", () => {
  const refusing = (isRefused: (request: CheckRequest) => boolean): Receiver => {
    const judge = correct();
    return (request) => (isRefused(request) ? { statusCode: 400 } : judge(request));
  };
  const accepting = (isAccepted: (request: CheckRequest) => boolean): Receiver => {
    const judge = correct();
    return (request) => (isAccepted(request) ? { statusCode: 200 } : judge(request));
  };
  const dropping = (isDropped: (request: CheckRequest) => boolean, errorCode: string): Receiver => {
    const judge = correct();
    return (request) => (isDropped(request) ? { errorCode } : judge(request));
  };
  const isRepeat = ({ headers }: CheckRequest) => lower(headers)["x-svc-attempt"] === "2";
  const first = (value: string | undefined) => value?.split(" ")[0];
  const cases: readonly (readonly [string, CheckedEndpoint, Receiver])[] = [
    [
      "changed_byte",
      HTTP,
      accepting(
        ({ headers, body }) => "x-svc-signature" in lower(headers) && !isForeign(headers, body),
      ),
    ],
    ["old_timestamp", STANDARD, correct({ isAgeless: true })],
    ["previous_signature", HTTP, correct({ names: ["x-svc-signature"] })],
    [
      "previous_signature",
      STANDARD,
      refusing(({ headers, body }) => {
        const given = lower(headers);
        return !fits(given, body, [first(given["webhook-signature"]) ?? ""]);
      }),
    ],
    [
      "current_signature",
      HTTP,
      correct({ names: ["x-svc-signature-previous", "x-svc-signature"], isFirstOnly: true }),
    ],
    ["deployed_secret", ROTATING, correct({ secret: FORMER })],
    ["repeat", HTTP, refusing(isRepeat)],
    ["repeat", HTTP, dropping(isRepeat, "reset")],
    ["unknown_field", HTTP, dropping(({ body }) => body.includes("unknown_field"), "protocol")],
    ["unknown_field", HTTP, refusing(({ body }) => body.includes("unknown_field"))],
    [
      "charset",
      HTTP,
      refusing(({ headers }) => lower(headers)["content-type"] !== "application/json"),
    ],
    ["response_margin", HTTP, (request) => ({ ...correct()(request), durationMs: MARGIN_MS + 1 })],
    ["certificate_expiry", HTTPS, ending(30 * DAY_MS - 1)],
  ];
  test.each(cases)("%s", async (code, endpoint, receiver) => {
    const { findings } = await run(endpoint, receiver);
    expect(faults(findings)).toEqual([code]);
    expect(findings.filter(({ passed }) => passed === null)).toEqual([]);
    const [one] = findings.filter(({ passed }) => passed === false).map(explainFinding);
    expect(one?.advice).toBeString();
    expect(hasPassed(findings)).toBe(code === "response_margin");
  });

  test("foreign_secret and changed_byte, if it verifies nothing", async () => {
    const { findings } = await run(HTTP, () => ({ statusCode: 204 }));
    expect(faults(findings)).toEqual(["changed_byte", "foreign_secret"]);
  });

  test.each([
    ["valid_signature", { statusCode: 500 }],
    ["valid_signature", { statusCode: 199 }],
    ["redirect", { statusCode: 308 }],
    ["rate_limit", { statusCode: 429 }],
    ["response_time", { errorCode: "timeout", durationMs: 15_000 }],
    ["tls", { errorCode: "tls", tlsReason: "expired" as const }],
    ["connection", { errorCode: "dns" }],
    ["connection", { errorCode: "reset" }],
  ])(
    "%s of an endpoint that answers everything with %p, after one request",
    async (code, answer) => {
      const { findings, sent } = await run(HTTPS, () => answer);
      expect(sent).toHaveLength(1);
      expect(faults(findings)).toEqual([code]);
      const later = findings.slice(findings.findIndex((one) => one.code === "repeat"));
      expect(new Set(later.map(({ passed }) => passed))).toEqual(new Set([null]));
    },
  );

  test.each([
    ["rate_limit", { statusCode: 429 }],
    ["connection", { errorCode: "connect", durationMs: 1_000 }],
  ])("%s alone of an endpoint that answers with %p after a while", async (code, later) => {
    const judge = correct();
    let nth = 0;
    const { findings } = await run(HTTP, (request) => (++nth > 4 ? later : judge(request)));
    expect(faults(findings)).toEqual([code]);
    const undecided = findings.filter(({ passed }) => passed === null);
    expect(undecided).toHaveLength(4);
    // Only an answer has a time.
    const time = findings.find((one) => one.code === "response_time");
    expect(time).toMatchObject({ passed: true, durationMs: 20 });
  });

  test("none at the edges: 5 s, and 30 days of validity", async () => {
    const atEdge: Receiver = (request) => ({
      ...ending(30 * DAY_MS)(request),
      durationMs: MARGIN_MS,
    });
    expect(faults((await run(HTTPS, atEdge)).findings)).toEqual([]);
  });

  test("a forged request may be refused in any way", async () => {
    for (const refusal of [{ errorCode: "reset" }, { errorCode: "timeout" }, { statusCode: 302 }]) {
      const judge = correct();
      const { findings } = await run(STANDARD, (request) => {
        const answer = judge(request);
        return answer.statusCode === 401 ? refusal : answer;
      });
      expect(faults(findings)).toEqual([]);
    }
  });
});

describe("the requests", () => {
  test("are tests with ids of their own; the repeat has the id and the facts of the first", async () => {
    const { sent } = await run(STANDARD, correct());
    const ids = sent.map(({ headers }) => lower(headers)["x-svc-delivery"]);
    expect(new Set(ids).size).toBe(sent.length - 1);
    expect(ids[0]).toBe(ids[1]);
    const [one, repeat] = sent.map(({ body }) => JSON.parse(body));
    expect({ ...repeat, delivered_at: null }).toEqual({ ...one, delivered_at: null });
    for (const { headers, body } of sent) {
      expect(headers).toMatchObject({ "X-SVC-Event": "webhook.test", "X-SVC-Test": "1" });
      expect(JSON.parse(body)).toMatchObject({ partner: { id: 7 }, event: "webhook.test" });
    }
  });

  test("with a library of Standard Webhooks: it refuses exactly the forged ones", async () => {
    const webhook = new Webhook(standardSecret(SECRET));
    const { findings, sent } = await run(
      { ...STANDARD, payloadMode: "minimal" },
      (request) => {
        try {
          webhook.verify(request.body, lower(request.headers));
          return { statusCode: 200 };
        } catch {
          return { statusCode: 401 };
        }
      },
      fromMs(Date.now()),
    );
    expect([faults(findings), sent.length]).toEqual([[], 9]);
  });

  test("sign nothing that a receiver should accept with the random secret alone", async () => {
    const { sent } = await run({ ...STANDARD, previousSecret: FORMER }, correct());
    expect(sent).toHaveLength(10);
    const signed = sent.filter(({ headers, body }) =>
      fits(lower(headers), body, signaturesOf(headers)),
    );
    // All but the changed byte and the foreign secret.
    expect(signed).toHaveLength(8);
  });

  test("end without a result when one is not sent", async () => {
    const deps = { now: () => NOW, newUlid: ulid, send: async () => undefined };
    expect(await checkEndpoint(HTTP, deps)).toBeUndefined();
  });
});

test("a finding of a newer version is a fault without advice", () => {
  const [finding] = [{ code: "newer" as Finding["code"], passed: false }] as Finding[];
  if (finding === undefined) throw new Error("none");
  expect(explainFinding(finding)).toMatchObject({ severity: "fault", advice: null });
  expect(hasPassed([finding])).toBe(false);
});

test("the advice on a failure of TLS is that of its reason", async () => {
  const { findings } = await run(HTTPS, () => ({ errorCode: "tls", tlsReason: "wrong_name" }));
  const tls = findings.map(explainFinding).find(({ code }) => code === "tls");
  expect(tls?.advice).toStartWith("The host of the URL must be in the subjectAltName");
});

type Receiver = (request: CheckRequest) => Partial<CheckAnswer>;

async function run(endpoint: CheckedEndpoint, receiver: Receiver, now = NOW) {
  const sent: CheckRequest[] = [];
  const send = async (request: CheckRequest): Promise<CheckAnswer> => {
    sent.push(request);
    const isSecure = endpoint.webhookUrl.startsWith("https:");
    return {
      statusCode: null,
      errorCode: null,
      tlsReason: null,
      durationMs: 20,
      certificateEndsAt: isSecure ? addMs(NOW, 90 * DAY_MS) : null,
      ...receiver(request),
    };
  };
  const findings = await checkEndpoint(endpoint, { now: () => now, newUlid: ulid, send });
  return { findings: findings ?? [], sent };
}

const faults = (findings: readonly Finding[]): string[] =>
  findings.filter(({ passed }) => passed === false).map(({ code }) => code);

const lower = (headers: CheckRequest["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const ending = (ms: number): Receiver => {
  const judge = correct();
  return (request) => ({ ...judge(request), certificateEndsAt: addMs(NOW, ms) });
};

const hmac = (key: string, text: string) => createHmac("sha256", key).update(text);

/** All signatures of a request. */
function signaturesOf(headers: CheckRequest["headers"]): string[] {
  const given = lower(headers);
  const standard = given["webhook-signature"]?.split(" ") ?? [];
  return [given["x-svc-signature"] ?? "", given["x-svc-signature-previous"] ?? "", ...standard];
}

/** Whether a secret of the test made one of the signatures. */
function fits(given: Record<string, string>, body: string, signatures: readonly string[]): boolean {
  const message = `${given["webhook-id"]}.${given["webhook-timestamp"]}.${body}`;
  return [SECRET, FORMER].some(
    (key) =>
      signatures.includes(`sha256=${hmac(key, body).digest("hex")}`) ||
      signatures.includes(`v1,${hmac(key, message).digest("base64")}`),
  );
}

/** Whether no secret of the test signed the body, also not before the change of its byte. */
function isForeign(headers: CheckRequest["headers"], body: string): boolean {
  const digits = Array.from({ length: 10 }, (_, digit) =>
    body.replace(/("occurred_at":"[^"]*\.\d\d)\d/, `$1${digit}`),
  );
  return !digits.some((one) => fits(lower(headers), one, signaturesOf(headers)));
}

interface Faults {
  readonly secret?: string;
  /** The headers whose signatures count. */
  readonly names?: readonly string[];
  readonly isFirstOnly?: boolean;
  readonly isAgeless?: boolean;
}

/** A receiver that verifies signature and age as the guide says, except for its faults. */
function correct({ secret = SECRET, names, isFirstOnly, isAgeless }: Faults = {}): Receiver {
  const known = names ?? ["x-svc-signature", "x-svc-signature-previous"];
  return ({ headers, body }) => {
    const given = lower(headers);
    const present = known.flatMap((name) => given[name] ?? []);
    const counted = isFirstOnly ? present.slice(0, 1) : present;
    if (!counted.includes(`sha256=${hmac(secret, body).digest("hex")}`)) return { statusCode: 401 };
    const sentAt = JSON.parse(body).delivered_at ?? NOW;
    const isOld = Math.abs(NOW.getTime() - new Date(sentAt).getTime()) > 300_000;
    return { statusCode: isOld && !isAgeless ? 401 : 200 };
  };
}
