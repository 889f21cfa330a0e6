import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { until } from "../../support/network/receiver.ts";
import { settle, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

// Operators read webhooks of a partner by the same code as the partner (contract 10.3), and cannot change them.

const world = fixture(startWebhooks);

const READS = [
  "",
  "/events",
  "/{id}",
  "/{id}/check/{checkId}",
  "/{id}/deliveries",
  "/{id}/deliveries?outcome=failed&limit=1",
  "/{id}/deliveries/{event}",
  "/{id}/messages",
  "/{id}/health",
  "/{id}/incident",
  "/{id}/incidents",
  "/{id}/stats",
];

test("operators have every reading route of the partner, and three that act", () => {
  const routes = createApp(world.api.deps).routes.filter(({ method }) => method !== "ALL");
  const below = (base: string) =>
    routes
      .filter(({ path }) => path.startsWith(BASE_PATH + base))
      .map(({ method, path }) => `${method} ${path.slice((BASE_PATH + base).length)}`)
      .toSorted();
  const seen = below("/admin/partners/:id/webhooks");
  const reads = below("/partner/webhooks").filter((one) => one.startsWith("GET"));
  const { acts = [], looks = [] } = Object.groupBy(seen, (one) =>
    one.startsWith("GET") ? "looks" : "acts",
  );
  expect(acts).toEqual([
    "DELETE /:subscriptionId",
    "POST /:subscriptionId/disable",
    "POST /:subscriptionId/enable",
  ]);
  expect(looks).toEqual(reads.map((one) => one.replace(":id", ":subscriptionId")).toSorted());
  const tested = READS.map((path) => path.replace(/\?.*/, "").replace("{event}", "{eventId}"));
  const all = reads.map((one) => one.replace(/^GET \/?/, "/").replaceAll(/:(\w+)/g, "{$1}"));
  const expected = [...new Set(["/{id}/stream", ...tested.map((path) => path || "/")])];
  expect(expected.toSorted()).toEqual(all.toSorted());
});

describe.each(READS)("%s", (path) => {
  test("answers like the route of the partner, without the secret", async () => {
    const theirs = await world.ask("GET", fill(path));
    const seen = await look(fill(path));
    expect([seen.status, seen.body]).toEqual([200, theirs.body]);
    expect(seen.text).not.toContain(secret);
  });

  test("is the same 404 for a foreign, missing or malformed id", async () => {
    const account = world.tenants.partners[0].accounts[0].id;
    for (const partner of [2_000_000_000, account]) {
      const { status, body } = await look(fill(path), { partner });
      expect([status, body["code"]]).toEqual([404, "not_found"]);
    }
    if (!path.includes("{id}")) return;
    for (const [one, partner] of [
      [id, other],
      [ulid(), own],
      ["not-an-id", own],
    ] as const)
      expect((await look(fill(path, one), { partner })).status).toBe(404);
  });
});

test("the list of another partner has no subscription of this one", async () => {
  expect((await look("", { partner: other })).body["data"]).toEqual([]);
});

test("looking leaves a row per operator, partner and hour, and a partner's own reads leave none", async () => {
  const rows = () => world.audit("TENANT_READ");
  await look("");
  await look("", { partner: other });
  const before = await rows();
  for (const partner of [own, other])
    expect(before.filter(({ details }) => fieldsOf(details)["partner_id"] === partner)).toEqual([
      { actor: world.tenants.superAdmin.id, details: { partner_id: partner, kind: "webhooks" } },
    ]);
  await Promise.all(["", `/${id}`, `/${id}/deliveries`].map((path) => look(path)));
  await world.ask("GET", "");
  expect(await rows()).toEqual(before);
  world.clock.advance(3_600_000);
  await look(`/${id}`, { as: await world.api.login(world.tenants.superAdmin.email) });
  expect(await rows()).toHaveLength(before.length + 1);
});

test("an operator follows deliveries live, until the token ends", async () => {
  const root = world.api.listen();
  const token = await world.api.login(world.tenants.superAdmin.email);
  const response = await fetch(`${root}${BASE_PATH}/admin/partners/${own}/webhooks/${id}/stream`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const received: string[] = [];
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) received.push(decoder.decode(chunk));
  })();
  await until("the health", () => received.join("").includes("event: health"));
  await world.api.call("GET", "/logout", { token });
  await until("the stream sleeps", () => world.clock.sleepers > 0);
  world.clock.advance(2_000);
  await reading;
  expect(received.join("")).toContain(`"id":"${id}"`);
});

let id: string;

let eventId: string;

let checkId: string;

let secret: string;

let own: number;

let other: number;

beforeAll(async () => {
  [own, other] = [world.tenants.partners[0].id, world.tenants.partners[1].id];
  ({ id, secret } = await world.subscribe({ label: "Seen" }));
  [eventId = ""] = await world.emit(2);
  await settle(world, id, "failed");
  checkId = String((await world.ask("POST", `/${id}/check`)).body["check_id"]);
});

const fill = (path: string, subscription = id, event = eventId) =>
  path.replace("{id}", subscription).replace("{event}", event).replace("{checkId}", checkId);

const look = (path: string, { partner = own, as = world.tokens.root } = {}) =>
  world.api.call("GET", `/admin/partners/${partner}/webhooks${path}`, { token: as });
