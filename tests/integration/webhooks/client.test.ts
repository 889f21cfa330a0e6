import { beforeAll, expect, test } from "bun:test";

import { answerOf, ApiError, createApiClient } from "../../../src/api/client.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

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
