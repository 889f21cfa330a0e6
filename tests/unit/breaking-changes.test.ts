import { describe, expect, test } from "bun:test";

import baseline from "../golden/openapi-baseline.json";
import { breakingChanges } from "../support/breaking-changes.ts";

describe("of a description it breaks a client", () => {
  test("to take nothing away, or to add what nobody needs, does not", () => {
    expect(changed(() => {})).toEqual([]);
    expect(
      changed(({ components: { schemas } }) => {
        Object.assign(schemas.SubscriptionInput.properties, { note: { type: "string" } });
        Object.assign(schemas.Subscription.properties, { note: { type: "string" } });
      }),
    ).toEqual([]);
  });

  test.each<[string, (document: typeof baseline) => void, string]>([
    [
      "an operation that is gone",
      ({ paths }) => Reflect.deleteProperty(paths, "/healthz"),
      "get /healthz is gone",
    ],
    [
      "an operation of another name",
      ({ paths }) => (paths["/healthz"].get.operationId = "health"),
      "get /healthz has another operationId",
    ],
    [
      "an answer that lacks a field",
      ({ components: { schemas } }) => Reflect.deleteProperty(schemas.Secret.properties, "secret"),
      "post /api/v1/partner/webhooks/{id}/secret 200 has no secret",
    ],
    [
      "a request that needs a field more",
      ({ components: { schemas } }) => schemas.SubscriptionInput.required.push("ordering"),
      "post /api/v1/partner/webhooks body needs ordering",
    ],
    [
      "a value that a request may not have any more",
      ({ components: { schemas } }) => schemas.DeliveryKind.enum.pop(),
      "post /api/v1/partner/webhooks body delivery_kind takes no batch",
    ],
    [
      "another type",
      ({ components: { schemas } }) => (schemas.Message.properties.message.type = "integer"),
      "get /api/v1/logout 200 message has another type",
    ],
  ])("%s", (_, change, expected) => {
    expect(changed(change)).toContain(expected);
  });
});

const changed = (change: (document: typeof baseline) => void) => {
  const after = structuredClone(baseline);
  change(after);
  return breakingChanges(baseline, after);
};
