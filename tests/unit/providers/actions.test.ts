import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import type { Db } from "../../../db/client.ts";
import type { Failure, FailureAudit } from "../../../src/auth/audit-failures.ts";
import type { RequestContext } from "../../../src/http/request-context.ts";
import { Problem } from "../../../src/lib/problem.ts";
import type { SecretBox } from "../../../src/lib/secret-box.ts";
import { createSignatures, hasSignature, takeEvents } from "../../../src/providers/actions.ts";
import type { RequestResult } from "../../../src/providers/batch.ts";
import type { ProviderRequest } from "../../../src/providers/decide-batch.ts";
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
  /** Sealed secrets by slug, as in the database. */
  let sealed: Map<string, string>;
  let reads: string[];
  let failures: Failure[];
  let signatures: ReturnType<typeof createSignatures>;

  beforeEach(() => {
    sealed = new Map([["google", "sealed one"]]);
    [reads, failures] = [[], []];
    const db = {
      async run(_: unknown, { slugs }: { slugs: readonly string[] }) {
        reads.push(...slugs);
        return slugs.flatMap((slug) => {
          const sealedSecret = sealed.get(slug);
          return sealedSecret === undefined ? [] : [{ slug, sealedSecret }];
        });
      },
    };
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

  function signed(secret: string) {
    const raw = Buffer.from("{}");
    const digest = createHmac("sha256", secret).update(raw).digest("hex");
    return { raw, requestContext: callWith({ "X-Provider-Signature": `sha256=${digest}` }) };
  }
  const ONE = "sealed one of provider:google";

  test("is verified with the cached secret, which is read once", async () => {
    const first = signed(ONE);
    await signatures.verify("google", first);
    expect(signatures.sealedSecretOf(first.raw)).toBe("sealed one");
    await signatures.verify("google", signed(ONE));
    expect(reads).toEqual(["google"]);
    expect(failures).toEqual([]);
  });

  test("that does not match the cached secret is verified with the current one", async () => {
    await signatures.verify("google", signed(ONE));
    sealed.set("google", "sealed two");
    const next = signed("sealed two of provider:google");
    await signatures.verify("google", next);
    expect(signatures.sealedSecretOf(next.raw)).toBe("sealed two");
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
    expect(signatures.sealedSecretOf(one.raw)).toBe("");
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
  const took = (accepted: number): RequestResult => ({
    kind: "accepted",
    accepted,
    woken: Promise.resolve(),
  });
  const SECRET: RequestResult = { kind: "deferred", reason: "secret" };

  /** Reports these events; `answers` are the results of the batcher, in order. */
  async function reported(events: unknown, ...answers: RequestResult[]) {
    const asked: ProviderRequest[] = [];
    const came: Date[] = [];
    let verified = 0;
    const answer = problemOf(
      takeEvents(
        {
          clock: { ...clock, now: () => new Date("2026-06-01T12:00:00Z") },
          traces: { came: (instants) => void came.push(...instants) },
          signatures: {
            verify: async () => undefined,
            verifyAgain: async () => void verified++,
            sealedSecretOf: () => `sealed ${verified}`,
          },
          partners: async (sites) => sites.map((site) => site * 10),
          profanity: () => [],
          async submit(request) {
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
    return { answer: await answer, asked, came, verified };
  }

  test("reports how many of its events were accepted and how many are duplicates", async () => {
    const { answer, asked, came, verified } = await reported([event("a"), event("b")], took(1));
    expect(answer).toEqual({ accepted: 1, duplicates: 1 });
    expect(asked).toMatchObject([{ slug: "google", sealedSecret: "sealed 0", partners: [50, 50] }]);
    expect(verified).toBe(0);
    // Traces find an event by the identity of its Date object.
    expect(came).toEqual(asked[0]?.read.events.map(({ occurredAt }) => occurredAt) ?? []);
    expect(came).toHaveLength(2);
  });

  test("is verified again and submitted once more if the provider's secret has changed", async () => {
    const again = await reported([event("a")], SECRET, took(1));
    expect(again.answer).toEqual({ accepted: 1, duplicates: 0 });
    expect(again.asked.map(({ sealedSecret }) => sealedSecret)).toEqual(["sealed 0", "sealed 1"]);
    const changing = await reported([event("a")], SECRET, SECRET);
    expect([changing.answer, changing.verified]).toEqual([["unavailable", undefined], 1]);
  });

  test.each(["sequence", "row", "write"] as const)(
    "that could not be written because of a %s is answered unavailable",
    async (reason) => {
      const { answer, asked, verified } = await reported([event("a")], {
        kind: "deferred",
        reason,
      });
      expect([answer, asked.length, verified]).toEqual([["unavailable", undefined], 1, 0]);
    },
  );

  test("that is rejected lists its field errors", async () => {
    const fieldErrors = { "events.0.store_review_site_id": ["is not there"] };
    const { answer } = await reported([event("a")], { kind: "rejected", fieldErrors });
    expect(answer).toEqual(["validation_failed", fieldErrors]);
  });

  test("without references is verified with the current secret before its field errors are shown", async () => {
    const { answer, asked, verified } = await reported([1]);
    expect(answer).toEqual(["validation_failed", { "events.0": ["must be an object"] }]);
    expect([asked.length, verified]).toEqual([0, 1]);
  });
});

const clock = createFakeClock();

const problemOf = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: unknown) => (error instanceof Problem ? [error.code, error.errors] : error),
  );

function callWith(headers: Record<string, string>): RequestContext {
  return { requestId: "r", ip: "192.0.2.1", userAgent: null, headers: new Headers(headers) };
}
