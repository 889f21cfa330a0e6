import { beforeAll, expect, expectTypeOf, test } from "bun:test";

import { answerOf, ApiError, createApiClient } from "../../../src/api/client.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

test("the client calls an operation by its declaration, and its types are those of the schemas", async () => {
  const { webhooks } = api.partner;
  const made = await answerOf(webhooks.post(wanted));
  expectTypeOf(made.secret).toEqualTypeOf<string>();
  expectTypeOf(made.delivery_kind).toEqualTypeOf<"immediate" | "batch">();
  expectTypeOf(made.events).toEqualTypeOf<string[] | null>();
  const { id } = made;
  const updated = await answerOf(webhooks({ id }).patch({ ordering: "review" }));
  expect(updated.ordering).toBe("review");
  const { event_id: eventId } = await answerOf(webhooks({ id }).test.post());
  const delivery = await answerOf(webhooks({ id }).deliveries({ eventId }).get());
  expect(delivery.state).toBe("pending");
  expectTypeOf(delivery.attempts[0]?.outcome).toEqualTypeOf<
    "delivered" | "retry" | "failed" | "interrupted" | undefined
  >();
  const { data, next_cursor } = await answerOf(
    webhooks({ id }).deliveries.get({ query: { limit: 5, outcome: "failed" } }),
  );
  expect([data, next_cursor]).toEqual([[], null]);
  const { status } = await webhooks({ id }).delete();
  expect(status).toBe(204);
});

test("the client throws the error of the API with its fields", async () => {
  const refused = answerOf(api.partner.webhooks.post({ ...wanted, label: "" }));
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

test("the client reports every 401 before it throws", async () => {
  const calls: string[] = [];
  const stranger = createApiClient({
    serverRoot,
    token: () => "no-token",
    onUnauthorized: () => calls.push("unauthorized"),
  });
  const refused = answerOf(stranger.partner.webhooks.get({ query: { limit: 5 } }));
  await refused.catch(({ status }: ApiError) => calls.push(`${status}`));
  expect(calls).toEqual(["unauthorized", "401"]);
});

test("the client throws no ApiError without a response", async () => {
  const nowhere = createApiClient({ serverRoot: "http://127.0.0.1:1", token: () => undefined });
  const error = await answerOf(nowhere.partner.webhooks.get()).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(ApiError);
});

test("a call that no route declares does not compile", () => {
  const { webhooks } = api.partner;
  const never = () => [
    // @ts-expect-error There is no such path.
    api.partner.webhook.get(),
    // @ts-expect-error The path has no such method.
    webhooks.delete(),
    // @ts-expect-error The path has a parameter.
    webhooks({}).get(),
    // @ts-expect-error A field is missing.
    webhooks.post({ label: "L" }),
    // @ts-expect-error The filter has no such value.
    webhooks({ id: "x" }).deliveries.get({ query: { outcome: "good" } }),
  ];
  expect(never).toBeFunction();
});

let serverRoot: string;

let api: ReturnType<typeof createApiClient>;

beforeAll(async () => {
  serverRoot = world.api.listen();
  api = createApiClient({ serverRoot, token: () => world.tokens.owner });
});

const wanted = {
  label: "Ours",
  webhook_url: "http://127.0.0.1:3699/hook",
  delivery_kind: "immediate",
} as const;
