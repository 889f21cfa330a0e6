// Operators who disable, enable and delete a subscription of a partner (contract 10.3).
import { describe, expect, test } from "bun:test";

import { queuedFor } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { startWebhooks, type Who } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);

describe("an operator", () => {
  test("disables a subscription with a reason that the partner sees, and events are held", async () => {
    const { id } = await world.subscribe();
    const disabled = await operate("POST", `/${id}/disable`, { reason: "Abuse, case 12" });
    expect([disabled.status, disabled.body["is_active"]]).toEqual([200, false]);
    expect(world.wakes).toEqual([id]);
    const shown = { disabled_reason: "operator", disabled_note: "Abuse, case 12" };
    expect((await world.ask("GET", `/${id}`)).body).toMatchObject(shown);
    const [eventId = ""] = await world.emit(1);
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ held: 1, pending: 0 });
    expect((await world.ask("GET", `/${id}/incident`)).body).toMatchObject({ since: null });
    const [audited] = await world.audit("WEBHOOK_DISABLED");
    expect(audited).toMatchObject({
      details: { subscription_id: id, reason: "Abuse, case 12" },
    });

    const { status, body } = await world.ask("POST", `/${id}/enable`);
    expect([status, body["code"]]).toEqual([409, "disabled_by_operator"]);
    expect((await world.ask("POST", `/${id}/disable`)).body).toMatchObject(shown);
    // A new subscription in the free slot would be active.
    const deleted = await world.ask("DELETE", `/${id}`);
    expect([deleted.status, deleted.body["code"]]).toEqual([409, "disabled_by_operator"]);

    const enabled = await operate("POST", `/${id}/enable`);
    const active = { is_active: true, disabled_reason: null, disabled_note: null };
    expect(enabled.body).toMatchObject(active);
    expect((await queuedFor(world.database.db, id)).map((one) => one.eventId)).toEqual([eventId]);
    expect((await world.ask("POST", `/${id}/enable`)).status).toBe(200);
  });

  test("skips the held events with held: skip", async () => {
    const { id } = await world.subscribe();
    await operate("POST", `/${id}/disable`, { reason: "Billing" });
    await world.emit(2);
    await operate("POST", `/${id}/enable`, { held: "skip" });
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ held: 0, pending: 0 });
  });

  test("takes over a subscription that its partner disabled, and keeps the time", async () => {
    const { id } = await world.subscribe();
    const { body } = await world.ask("POST", `/${id}/disable`);
    world.clock.advance(5_000);
    const taken = await operate("POST", `/${id}/disable`, { reason: "Abuse" });
    expect(taken.body).toMatchObject({
      disabled_reason: "operator",
      disabled_at: body["disabled_at"],
    });
    expect((await world.ask("POST", `/${id}/enable`)).status).toBe(409);
    await operate("POST", `/${id}/enable`);
  });

  test("deletes a subscription with a reason in the audit log, also one that it disabled", async () => {
    const { id } = await world.subscribe();
    await operate("POST", `/${id}/disable`, { reason: "Abuse" });
    expect((await operate("DELETE", `/${id}`)).status).toBe(422);
    expect((await operate("DELETE", `/${id}?reason=Contract%20ended`)).status).toBe(204);
    expect((await world.ask("GET", `/${id}`)).status).toBe(404);
    expect((await world.audit("WEBHOOK_DELETED")).at(-1)).toMatchObject({
      details: { subscription_id: id, reason: "Contract ended" },
    });
    await world.subscribe();
  });

  test.each([
    ["x".repeat(500), 200],
    ["x".repeat(501), 422],
    ["", 422],
    [7, 422],
    [undefined, 422],
  ])("gives a reason of 1 to 500 characters", async (reason, status) => {
    const { id } = await world.subscribe();
    const answer = await operate("POST", `/${id}/disable`, { reason });
    expect(answer.status).toBe(status);
    if (status === 422) expect(Object.keys(answer.body["errors"] as object)).toEqual(["reason"]);
    await operate("POST", `/${id}/enable`);
  });

  test("does not find the subscription below another partner", async () => {
    const { id } = await world.subscribe();
    const other = `/admin/partners/${world.tenants.partners[1].id}/webhooks/${id}/disable`;
    const body = { reason: "Abuse" };
    expect((await world.api.call("POST", other, { token: world.tokens.root, body })).status).toBe(
      404,
    );
  });
});

test.each(["owner", "other", "account"] as const)("is 403 for the %s", async (who) => {
  const { id } = await world.subscribe();
  expect((await operate("POST", `/${id}/disable`, { reason: "Abuse" }, who)).status).toBe(403);
  expect((await operate("POST", `/${id}/enable`, {}, who)).status).toBe(403);
  expect((await operate("DELETE", `/${id}?reason=x`, undefined, who)).status).toBe(403);
  expect((await world.ask("GET", `/${id}`)).body).toMatchObject({ is_active: true });
});

function operate(method: string, path: string, body?: object, as: Who = "root") {
  const below = `/admin/partners/${world.tenants.partners[0].id}/webhooks`;
  return world.api.call(method, below + path, { token: world.tokens[as], body });
}
