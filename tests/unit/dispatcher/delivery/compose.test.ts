import { describe, expect, test } from "bun:test";

import { composeRequest, factsOf, recordAttempt } from "../../../../dispatcher/delivery/compose.ts";
import type { PostResult } from "../../../../dispatcher/delivery/deliver.ts";
import { encodeRequest } from "../../../../dispatcher/http/message.ts";
import { checkWebhookUrl } from "../../../../src/lib/egress.ts";
import { composeBody } from "../../../../src/outbox/payload-format.ts";
import { testFactsOf } from "../../../../src/outbox/test-event.ts";
import { headersError } from "../../../../src/webhooks/header-rules.ts";
import { entry, subscription } from "../../../support/actor.ts";

test("an entry is sendable unless the row of the history that it names is missing", () => {
  expect(factsOf(entry(1), 7)).toBeDefined();
  expect(factsOf(entry(1, { isTest: true, facts: undefined }), 7)).toBeDefined();
  expect(factsOf(entry(1, { facts: undefined }), 7)).toBeUndefined();
});

test.each(["full", "minimal"] as const)(
  "a test composes exactly the bytes of tests/golden/test-%s.json",
  async (mode) => {
    const probe = entry(1, {
      event: "webhook.test",
      eventId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
      isTest: true,
      recordedAt: new Date("2026-06-01T12:00:00.000Z"),
      facts: undefined,
    });
    const facts = factsOf(probe, 7);
    if (facts === undefined) throw new Error("The entry has no facts.");
    const golden = Bun.file(`${import.meta.dir}/../../../golden/test-${mode}.json`);
    expect(composeBody(facts, mode, new Date("2026-06-01T12:00:01.250Z"))).toBe(
      await golden.text(),
    );
  },
);

describe("headers of one's own", () => {
  const VALUE = "hush-hush-1";
  const headers = { "X-Api-Key": VALUE, Authorization: "Bearer hush-hush-2" };
  const all = { ...subscription, previousSecret: "former", standardWebhooks: true };
  const composed = (isTest: boolean, own: typeof headers | null) =>
    composeRequest(entry(1, { isTest }), testFactsOf(entry(1), 1), { ...all, headers: own }, at);
  const at = new Date("2026-06-01T12:00:01.250Z");

  test.each([true, false])("follow after all of ours, unchanged (test: %j)", (isTest) => {
    const ours = Object.entries(composed(isTest, null).headers);
    const sent = Object.entries(composed(isTest, headers).headers);
    expect(sent).toEqual([...ours, ...Object.entries(headers)]);
  });

  test("cannot have the name of a header that the dispatcher writes", () => {
    const check = checkWebhookUrl(subscription.webhookUrl, {
      allowHttp: false,
      allowedNetworks: [],
    });
    if (check.kind === "refused") throw new Error(check.reason);
    const [text] = encodeRequest(check.target, composed(true, null).headers, "");
    const [, ...lines] = String(text).trimEnd().split("\r\n");
    const names = lines.map((line) => line.split(":")[0] ?? "");
    expect(names.length).toBeGreaterThan(11);
    for (const name of names) expect(headersError({ [name]: "v" })).toContain("is reserved");
  });

  const made = (isTest: boolean, own: typeof headers | null) => {
    const result: PostResult = {
      kind: "rejected",
      errorCode: "http_status",
      durationMs: 1,
      resent: false,
      statusCode: 401,
      responseHeaders: { "x-echo": `key=${VALUE}`, "x-other": "o" },
      responseExcerpt: `The key ${VALUE} is unknown. ${VALUE.slice(0, -1)}`,
      responseTruncated: true,
    };
    const post = {
      id: "A",
      shard: 1,
      subscriptionId: "S",
      erasures: 0,
      startedAt: at,
      endedMs: 1,
      possiblyRepeated: false,
      host: "receiver.example",
      entry: entry(1, { isTest }),
      request: composed(isTest, own),
    };
    return recordAttempt(post, result, { kind: "failed" });
  };

  test("are recorded by name alone, and responses without their values", () => {
    for (const isTest of [true, false])
      expect(JSON.stringify(made(isTest, headers))).not.toContain("hush-hush");
    const record = made(false, headers);
    expect(record.headerNames).toBe("X-Api-Key,Authorization");
    expect(record.requestHeaders).toBeNull();
    expect(record.responseHeaders).toEqual({ "x-echo": "key=(hidden)", "x-other": "o" });
    expect(record.responseExcerpt).toBe("The key (hidden) is unknown. (hidden)");
  });

  test("of a test stand in its stored request with a placeholder, at their place", () => {
    const { headerNames, requestHeaders } = made(true, headers);
    expect(headerNames).toBeNull();
    expect(Object.entries(requestHeaders ?? {}).slice(-3)).toEqual([
      ["X-Api-Key", "(hidden)"],
      ["Authorization", "(hidden)"],
      ["Content-Length", expect.any(String)],
    ]);
  });

  test("that do not exist leave the record as it is", () => {
    const record = made(false, null);
    expect(record.headerNames).toBeNull();
    expect(record.responseExcerpt).toContain(VALUE);
  });
});
