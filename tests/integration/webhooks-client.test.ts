import { afterAll, beforeAll, expect, expectTypeOf, test } from "bun:test";

import { createApiClient } from "../../src/client/api.ts";
import { ApiError } from "../../src/client/client.ts";
import { BASE_PATH } from "../../src/http/base-path.ts";
import { startWebhooks, type WebhookWorld } from "../support/webhooks.ts";

let world: WebhookWorld;
let api: ReturnType<typeof createApiClient>;
beforeAll(async () => {
  world = await startWebhooks();
  api = createApiClient({
    baseUrl: world.api.listen() + BASE_PATH,
    token: () => world.tokens.owner,
  });
});
afterAll(() => world.stop());

const wanted = {
  label: "Ours",
  webhook_url: "http://127.0.0.1:3699/hook",
  delivery_kind: "immediate",
} as const;

test("the client calls an operation by its declaration, and its types are those of the schemas", async () => {
  const made = await api.call("POST", "/partner/webhooks", { body: wanted });
  expectTypeOf(made.secret).toEqualTypeOf<string>();
  expectTypeOf(made.delivery_kind).toEqualTypeOf<"immediate" | "batch">();
  expectTypeOf(made.events).toEqualTypeOf<string[] | null>();
  const params = { id: made.id };
  const updated = await api.call("PATCH", "/partner/webhooks/:id", {
    params,
    body: { ordering: "review" },
  });
  expect(updated.ordering).toBe("review");
  const { event_id } = await api.call("POST", "/partner/webhooks/:id/test", { params });
  const delivery = await api.call("GET", "/partner/webhooks/:id/deliveries/:eventId", {
    params: { ...params, eventId: event_id },
  });
  expect(delivery.state).toBe("pending");
  expectTypeOf(delivery.attempts[0]?.outcome).toEqualTypeOf<
    "delivered" | "retry" | "failed" | "interrupted" | undefined
  >();
  const { data, next_cursor } = await api.call("GET", "/partner/webhooks/:id/deliveries", {
    params,
    query: { limit: 5, outcome: "failed" },
  });
  expect([data, next_cursor]).toEqual([[], null]);
  const gone = await api.call("DELETE", "/partner/webhooks/:id", { params });
  expectTypeOf(gone).toEqualTypeOf<undefined>();
  expect(gone).toBeUndefined();
});

test("the client throws what the API refuses, with the fields", async () => {
  const refused = api.call("POST", "/partner/webhooks", { body: { ...wanted, label: "" } });
  const error = await refused.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 422,
    code: "validation_failed",
    errors: { label: [expect.any(String)] },
    requestId: expect.any(String),
  });
});

test("what no route declares does not compile", () => {
  const params = { id: "x" };
  const never = () => [
    // @ts-expect-error There is no such path.
    api.call("GET", "/partner/webhook", {}),
    // @ts-expect-error The path has no such method.
    api.call("DELETE", "/partner/webhooks", {}),
    // @ts-expect-error The path has a parameter.
    api.call("GET", "/partner/webhooks/:id", {}),
    // @ts-expect-error A field is missing.
    api.call("POST", "/partner/webhooks", { body: { label: "L" } }),
    // @ts-expect-error The filter has no such value.
    api.call("GET", "/partner/webhooks/:id/deliveries", { params, query: { outcome: "good" } }),
  ];
  expect(never).toBeFunction();
});
