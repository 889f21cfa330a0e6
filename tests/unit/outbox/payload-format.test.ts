import { expect, test } from "bun:test";

import {
  composeBody,
  payloadFormatNumberOf,
  payloadFormatOf,
  digestOf,
  framed,
  standardTimestamp,
} from "../../../src/outbox/payload-format.ts";
import type { EventFacts, PayloadMode } from "../../../src/outbox/event.ts";

// The expected bytes never change: attempts of the last 30 days are shown in these formats. Other bytes need a new
// format with a new number.

test.each([1, 2, 3])("payload format %i makes these headers in this order", (number) => {
  const signed = {
    event: "review_received",
    eventId: review.eventId,
    attempt: 2,
    signature: "5a".repeat(32),
    previousSignature: "6b".repeat(32),
    place: null,
    standard: null,
  };
  const format = payloadFormatOf(number);
  const headers = format?.headers(signed) ?? {};
  expect(Object.entries(framed("partner.example:8443", headers, "zoë"))).toEqual([
    ["Host", "partner.example:8443"],
    ["Content-Type", "application/json"],
    ["User-Agent", "ReviewRelay/1.0 (webhooks)"],
    ["X-SVC-Event", "review_received"],
    ["X-SVC-Delivery", review.eventId],
    ["X-SVC-Attempt", "2"],
    ["X-SVC-Signature", `sha256=${"5a".repeat(32)}`],
    ["X-SVC-Signature-Previous", `sha256=${"6b".repeat(32)}`],
    ["Content-Length", "4"],
  ]);
  expect(format?.headers({ ...signed, previousSignature: null })).not.toHaveProperty(
    "X-SVC-Signature-Previous",
  );
  const standard = { timestamp: 1_780_315_201, signatures: "7c".repeat(32) + "8d".repeat(32) };
  const added = Object.entries(format?.headers({ ...signed, standard }) ?? {});
  expect(added).toEqual([
    ...Object.entries(headers),
    ["webhook-id", review.eventId],
    ["webhook-timestamp", "1780315201"],
    [
      "webhook-signature",
      "v1,fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHw= v1,jY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY0=",
    ],
  ]);
});

test("each mode has its payload format, and an unknown number has none", () => {
  expect([payloadFormatNumberOf("full"), payloadFormatNumberOf("minimal")]).toEqual([1, 3]);
  expect([0, 4, -1, 99].map(payloadFormatOf)).toEqual([undefined, undefined, undefined, undefined]);
});

test("the digest is the first half of the SHA-256 of the UTF-8", () => {
  // printf 'zoë' | sha256sum
  expect(digestOf("zoë")).toBe("2752b88686847fa5c86f47b94ce652b7");
});

const review: EventFacts = {
  eventId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  event: "response_submitted",
  occurredAt: new Date("2026-06-01T12:00:00.000Z"),
  partnerId: 7,
  reviewHistoryId: 9001,
  reviewId: 42,
  storeId: 3,
  storeReviewSiteId: 11,
  axis: null,
  actorJson: '{"type":"user","id":5,"name":"Zoë \\"Z\\" O’Neil"}',
  reviewJson:
    '{"id":42,"external_review_id":"g-42","store_id":3,"review_site_id":2,"source_platform":"google","rate":4,"reviewer":null}',
  siteJson: null,
  metadataJson: '{"body":"Thank you ✨"}',
};
const connection: EventFacts = {
  ...review,
  event: "review_pull_disconnected",
  reviewId: null,
  axis: "pull",
  reviewJson: null,
  siteJson:
    '{"store":{"id":3},"review_site":{"store_review_site_id":11,"review_site_id":2,"name":"Google","connection_status":"disconnected","disconnect_reason":"E-002"},"axis":"pull","error_code":"E-002","reason":"The sign-in to the review site has expired."}',
  metadataJson: "{}",
};
const posting: EventFacts = {
  ...connection,
  event: "response_post_succeeded",
  reviewId: 42,
  axis: "post",
  siteJson:
    '{"store":{"id":3},"review_site":{"store_review_site_id":11,"review_site_id":2,"name":"Google","connection_status":"connected","disconnect_reason":null},"axis":"post","error_code":null,"reason":null}',
};

const CASES: [number: number, mode: PayloadMode, of: string, facts: EventFacts, digest: string][] =
  [
    [1, "full", "review", review, "661cba33f8ae474f213225067cdbf4aa"],
    [3, "minimal", "review", review, "f5678797a3a166d1dc0296fa088808a9"],
    [1, "full", "connection", connection, "60cf8b7f2f64d990d810095b6abb4a4c"],
    [3, "minimal", "connection", connection, "1ede5f9b11fd25fbe84d7cabc6e70f49"],
    [1, "full", "posting", posting, "af806c0df3bebdc54bc70cc7008d1bb9"],
    [3, "minimal", "posting-review", posting, "42c60b8d73dcf82b6a54dfdc19b64366"],
  ];

/** Formats of earlier attempts, which no new attempt uses. */
const EARLIER: typeof CASES = [
  [2, "minimal", "review", review, "f5678797a3a166d1dc0296fa088808a9"],
  [2, "minimal", "connection", connection, "1ede5f9b11fd25fbe84d7cabc6e70f49"],
  [2, "minimal", "posting", posting, "03fd3e936af36e0ec71da838c24ce3e7"],
];

test.each([...CASES, ...EARLIER])(
  "payload format %i makes the recorded bytes of the %s body of a %s, as a new attempt does of the current format",
  async (...one) => {
    const [number, mode, of, facts, digest] = one;
    if (payloadFormatNumberOf(mode) === number)
      expect(digestOf(composeBody(facts, mode, deliveredAt))).toBe(digest);
    const body = payloadFormatOf(number)?.body(facts, deliveredAt) ?? "";
    // The digest is in this file, so that a golden file cannot be changed alone.
    expect(digestOf(body)).toBe(digest);
    expect(body).toBe(await Bun.file(`${import.meta.dir}/../../golden/${of}-${mode}.json`).text());
  },
);

test("the timestamp of Standard Webhooks has whole seconds", () => {
  expect(standardTimestamp(new Date("1970-01-01T00:00:02.999Z"))).toBe(2);
});

const deliveredAt = new Date("2026-06-01T12:00:01.250Z");
