import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";

import type { Db } from "../../../db/client.ts";
import type { Failure, FailureAudit } from "../../../src/audit/failures.ts";
import type { RequestContext } from "../../../src/http/request-context.ts";
import { Problem } from "../../../src/lib/problem.ts";
import type { SecretBox } from "../../../src/lib/secrets.ts";
import {
  createSignatures,
  hasSignature,
  acceptEvents,
} from "../../../src/intake/provider-actions.ts";
import type { Credentials } from "../../../src/intake/queries/finders.ts";
import type { Site } from "../../../src/intake/queries/look-up.ts";
import { type IntakeRequest } from "../../../src/intake/change.ts";
import type { Answer } from "../../../src/intake/group-commit.ts";
import { createFakeClock } from "../../support/clock.ts";

test.each([
  [`sha256=${"0".repeat(64)}`, true],
  [`sha256=${"0".repeat(63)}`, false],
  [`sha256=${"0".repeat(65)}`, false],
  [` sha1=${"0".repeat(64)}`, false],
  [`sha256=${"G".repeat(64)}`, false],
])("hasSignature accepts sha256= and 64 lower-case hex digits: %s", (signature, expected) => {
  expect(hasSignature(callWith({ "X-Provider-Signature": signature }))).toBe(expected);
  expect(hasSignature(callWith({}))).toBe(false);
});

describe("a signature", () => {
  /** The providers as in the database, by slug. */
  let sealed: Map<string, Partial<Credentials>>;
  let reads: string[];
  let failures: Failure[];
  let signatures: ReturnType<typeof createSignatures>;

  beforeEach(() => {
    sealed = new Map([["google", { sealedSecret: "sealed one" }]]);
    [reads, failures] = [[], []];
    const rows = async (condition: SQL) => {
      const [slugs] = new PgDialect().sqlToQuery(condition).params as [string[]];
      reads.push(...slugs);
      return slugs.flatMap((slug) => {
        const stored = sealed.get(slug);
        return stored === undefined ? [] : [{ ...PLAIN, slug, ...stored }];
      });
    };
    const db = { select: () => ({ from: () => ({ where: rows }) }) };
    const box: Pick<SecretBox, "open"> = { open: (text, context) => `${text} of ${context}` };
    const audit: Pick<FailureAudit, "record"> = {
      record: async (failure) => void failures.push(failure),
    };
    signatures = createSignatures({
      box: box as SecretBox,
      // Fakes have only the members that the code under test uses.
      db: db as unknown as Db,
      clock,
      failures: audit as FailureAudit,
    });
  });

  function signed(secret: string, timestamp?: number | string) {
    const raw = Buffer.from("{}");
    const content = timestamp === undefined ? raw : `${timestamp}.{}`;
    const digest = createHmac("sha256", secret).update(content).digest("hex");
    const headers = { "X-Provider-Signature": `sha256=${digest}` };
    const timed = timestamp !== undefined && { "X-Provider-Timestamp": String(timestamp) };
    return { raw, requestContext: callWith({ ...headers, ...timed }) };
  }
  const ONE = "sealed one of provider:google";

  test("is verified with the cached secret, which is read once", async () => {
    const first = signed(ONE);
    await signatures.verify("google", first);
    expect(signatures.signedOf(first.raw)).toEqual({ sealedSecret: "sealed one", isTimed: false });
    await signatures.verify("google", signed(ONE));
    expect(reads).toEqual(["google"]);
    expect(failures).toEqual([]);
  });

  test("that does not match the cached secret is verified with the current one", async () => {
    await signatures.verify("google", signed(ONE));
    sealed.set("google", { sealedSecret: "sealed two" });
    const next = signed("sealed two of provider:google");
    await signatures.verify("google", next);
    expect(signatures.signedOf(next.raw).sealedSecret).toBe("sealed two");
    expect(await problemOf(signatures.verify("google", signed(ONE)))).toEqual([
      "invalid_signature",
      undefined,
    ]);
    expect(reads).toEqual(["google", "google", "google"]);
  });

  test.each([
    ["google", "another", "google"],
    ["nobody", "there is no such provider", "nobody"],
    ["%00", "there is no such provider", null],
  ])("for %s with the secret %j is rejected and audited", async (slug, secret, provider) => {
    const one = signed(secret);
    expect(await problemOf(signatures.verify(slug, one))).toEqual(["invalid_signature", undefined]);
    expect(failures).toEqual([{ action: "PROVIDER_AUTH_FAILED", details: { provider } }]);
    expect(reads).toEqual(provider === null ? [] : [slug]);
    expect(signatures.signedOf(one.raw).sealedSecret).toBe("");
  });

  test("with the previous secret is accepted until the instant at which that expires", async () => {
    sealed.set("google", {
      sealedSecret: "sealed two",
      sealedPreviousSecret: "sealed one",
      previousSecretExpiresAt: new Date(clock.now().getTime() + 1_000),
    });
    const one = signed(ONE);
    await signatures.verify("google", one);
    expect(signatures.signedOf(one.raw).sealedSecret).toBe("sealed one");
    clock.advance(999);
    await signatures.verify("google", signed(ONE));
    clock.advance(1);
    expect(await problemOf(signatures.verify("google", signed(ONE)))).toEqual([
      "invalid_signature",
      undefined,
    ]);
    await signatures.verify("google", signed("sealed two of provider:google"));
  });

  const nowS = () => Math.floor(clock.now().getTime() / 1000);

  test.each([-300, 0, 300])("over a timestamp %d s from our clock is accepted", async (ahead) => {
    const one = signed(ONE, nowS() + ahead);
    await signatures.verify("google", one);
    expect(signatures.signedOf(one.raw)).toEqual({ sealedSecret: "sealed one", isTimed: true });
  });

  test.each([-301, 301])("over a timestamp %d s from our clock is refused", async (ahead) => {
    const one = signed(ONE, nowS() + ahead);
    const refusal = signatures.verify("google", one);
    expect(await refusal.catch(({ code, message }) => [code, message])).toEqual([
      "invalid_signature",
      "X-Provider-Timestamp must be the time of the request in Unix seconds, within 5 minutes of our clock.",
    ]);
    expect(failures).toEqual([
      { action: "PROVIDER_AUTH_FAILED", details: { provider: "google", reason: "timestamp" } },
    ]);
    expect(signatures.signedOf(one.raw).sealedSecret).toBe("");
  });

  test.each(["", "now", "1e3", "-1", "0x10", "12.5"])(
    "over the timestamp %j, which is no number of seconds, is refused",
    async (timestamp) => {
      const refusal = signatures.verify("google", signed(ONE, timestamp));
      expect(await refusal.catch(({ message }) => message)).toStartWith(
        "X-Provider-Timestamp must",
      );
    },
  );

  test("covers the timestamp: a removed, added or changed one is refused", async () => {
    const [timed, plain] = [signed(ONE, nowS()), signed(ONE)];
    const { headers } = timed.requestContext;
    const signature = headers.get("x-provider-signature") ?? "";
    for (const forged of [
      { "X-Provider-Signature": signature },
      { "X-Provider-Signature": signature, "X-Provider-Timestamp": String(nowS() + 1) },
      {
        "X-Provider-Signature": plain.requestContext.headers.get("x-provider-signature") ?? "",
        "X-Provider-Timestamp": String(nowS()),
      },
    ]) {
      const request = { raw: Buffer.from("{}"), requestContext: callWith(forged) };
      const refusal = signatures.verify("google", request);
      expect(await refusal.catch(({ message }) => message)).toBe(
        "The signature does not match the request body.",
      );
    }
  });

  test("without a timestamp is refused if the provider requires one", async () => {
    sealed.set("google", { sealedSecret: "sealed one", requiresTimestamp: true });
    const refusal = signatures.verify("google", signed(ONE));
    expect(await refusal.catch(({ message }) => message)).toStartWith("X-Provider-Timestamp must");
    await signatures.verify("google", signed(ONE, nowS()));
  });
});

describe("a request", () => {
  const raw = Buffer.from("{}");
  const event = (id: string) => ({
    id,
    type: "response.posted",
    occurred_at: "2026-06-01T12:00:00.000+00:00",
    store_review_site_id: 5,
    external_review_id: "r",
  });
  const took = (accepted: number): Answer => ({ kind: "accepted", accepted, unchanged: 0 });
  const SECRET: Answer = { kind: "deferred", reason: "secret" };

  /** Reports these events; `answers` are those of the intake, in order. */
  async function reported(events: unknown, ...answers: Answer[]) {
    const asked: IntakeRequest[] = [];
    let verified = 0;
    const answer = problemOf(
      acceptEvents(
        {
          clock: { ...clock, now: () => new Date("2026-06-01T12:00:00Z") },
          signatures: {
            verify: async () => undefined,
            verifyAgain: async () => void verified++,
            signedOf: () => ({ sealedSecret: `sealed ${verified}`, isTimed: false }),
          },
          sites: async (ids) => new Map(ids.map((id) => [id, { id, partnerId: id * 10 } as Site])),
          profanity: () => [],
          async intake(request) {
            asked.push(request);
            return answers.shift() ?? took(0);
          },
        },
        "google",
        { raw, requestContext: callWith({}), body: { events } },
      ).then((counts) => {
        throw counts;
      }),
    );
    return { answer: await answer, asked, verified };
  }

  test("is verified again and submitted once more if the provider's secret has changed", async () => {
    const again = await reported([event("a")], SECRET, took(1));
    expect(again.answer).toEqual({ accepted: 1, duplicates: 0 });
    expect(again.asked).toMatchObject([
      { signed: { sealedSecret: "sealed 0" } },
      { signed: { sealedSecret: "sealed 1" } },
    ]);
    const changing = await reported([event("a")], SECRET, SECRET);
    expect([changing.answer, changing.verified]).toEqual([["unavailable", undefined], 1]);
  });

  test("without references is verified with the current secret before its field errors are shown", async () => {
    const { answer, asked, verified } = await reported([1]);
    expect(answer).toEqual(["validation_failed", { "events.0": ["must be an object"] }]);
    expect([asked.length, verified]).toEqual([0, 1]);
  });
});

const clock = createFakeClock();
const PLAIN = {
  sealedPreviousSecret: null,
  previousSecretExpiresAt: null,
  requiresTimestamp: false,
};

const problemOf = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: unknown) => (error instanceof Problem ? [error.code, error.errors] : error),
  );

function callWith(headers: Record<string, string>): RequestContext {
  return { requestId: "r", ip: "192.0.2.1", userAgent: null, headers: new Headers(headers) };
}
