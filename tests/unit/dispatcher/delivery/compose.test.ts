import { verify } from "@octokit/webhooks-methods";
import { expect, test } from "bun:test";

import type { Entry } from "../../../../dispatcher/actor/event.ts";
import { factsOf } from "../../../../dispatcher/delivery/compose.ts";
import { hmacSha256Hex } from "../../../../src/lib/secrets.ts";
import type { EventFacts, PayloadMode } from "../../../../src/outbox/event.ts";
import { composeBody } from "../../../../src/outbox/payload-format.ts";
import { entry } from "../../../support/actor.ts";

test("changes nothing but delivered_at from one attempt to the next", () => {
  const first = JSON.parse(bodyOf(recorded(review), "full", deliveredAt));
  const second = JSON.parse(bodyOf(recorded(review), "full", new Date("2026-06-01T12:01:02.000Z")));
  expect(second).toEqual({ ...first, delivered_at: "2026-06-01T12:01:02.000+00:00" });
  expect(bodyOf(recorded(review), "minimal", deliveredAt)).toBe(
    bodyOf(recorded(review), "minimal", new Date(0)),
  );
});

test("signs the body with the secret as it is shown, like openssl dgst -sha256 -hmac", () => {
  // printf '{"event":"webhook.test"}' | openssl dgst -sha256 -hmac "$SECRET"
  expect(hmacSha256Hex(SECRET, '{"event":"webhook.test"}')).toBe(
    "ac36744c5e569bc2ef9eec8ae6b776dc44cc307d6bd532307f9044e20a435c8b",
  );
});

test("a GitHub-style verifier accepts the signature and refuses any other body or secret", async () => {
  const body = '{"reviewer":"Zoë 🦊","content":"\\u0000 \u2028"}';
  const signature = `sha256=${hmacSha256Hex(SECRET, body)}`;
  expect(await verify(SECRET, body, signature)).toBe(true);
  expect(await verify(SECRET, `${body} `, signature)).toBe(false);
  expect(await verify(SECRET.replace("0", "1"), body, signature)).toBe(false);
});

test("signs text and its UTF-8 bytes alike, an unpaired surrogate too", () => {
  for (const text of ["", "plain", "Zoë 🦊", "\ud800"])
    expect(hmacSha256Hex(SECRET, text)).toBe(hmacSha256Hex(SECRET, new TextEncoder().encode(text)));
});

test("an entry is sendable unless the row of the history that it names is missing", () => {
  expect(factsOf(entry(1), 7)).toBeDefined();
  expect(factsOf(entry(1, { isTest: true, facts: undefined }), 7)).toBeDefined();
  expect(factsOf(entry(1, { facts: undefined }), 7)).toBeUndefined();
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
  actorJson: '{"type":"system","id":null,"name":"google"}',
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

const recorded = (facts: EventFacts): Entry => entry(1, { facts });
const probe = entry(1, {
  event: "webhook.test",
  eventId: review.eventId,
  isTest: true,
  recordedAt: review.occurredAt,
  facts: undefined,
});

function bodyOf(one: Entry, mode: PayloadMode, at: Date): string {
  const facts = factsOf(one, 7);
  if (facts === undefined) throw new Error("The entry has no facts.");
  return composeBody(facts, mode, at);
}

const CASES: [golden: string, source: Entry, mode: PayloadMode][] = [
  ["review-full", recorded(review), "full"],
  ["review-minimal", recorded(review), "minimal"],
  ["connection-full", recorded(connection), "full"],
  ["connection-minimal", recorded(connection), "minimal"],
  ["posting-full", recorded(posting), "full"],
  ["posting-review-minimal", recorded(posting), "minimal"],
  ["test-full", probe, "full"],
  ["test-minimal", probe, "minimal"],
];

for (const [golden, source, mode] of CASES) {
  test(`composes exactly the bytes of tests/golden/${golden}.json`, async () => {
    const file = Bun.file(`${import.meta.dir}/../../../golden/${golden}.json`);
    const body = bodyOf(source, mode, deliveredAt);
    expect(body).toBe(await file.text());
    expect(JSON.parse(body)).toBeObject();
  });
}

const SECRET = "0123456789abcdef".repeat(4);

const deliveredAt = new Date("2026-06-01T12:00:01.250Z");
