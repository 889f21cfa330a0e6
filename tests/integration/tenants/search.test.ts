// An operator finds the records of all companies (contract 10.11).
import { beforeAll, describe, expect, test } from "bun:test";

import type { Answer } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { addClient } from "../../support/oauth.ts";
import { addSsoConnection } from "../../support/tenants.ts";
import { addService, startWebhooks, type Who } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);

interface Hit {
  readonly kind: string;
  readonly id: string;
  readonly partner_id: number | null;
  readonly subscription_id: string | null;
}

let ids: Readonly<Record<"subscription" | "event" | "connection" | "client" | "service", string>>;
beforeAll(async () => {
  const { db } = world.database;
  const { id: subscription } = await world.subscribe({
    label: "Warehouse",
    webhook_url: "http://127.0.0.1:3699/hooks/crm-7",
  });
  const [event = ""] = await world.emit(1);
  const [{ accounts, id: partnerId }] = world.tenants.partners;
  const domains = ["found.example", "mail.found.example"];
  const connection = await addSsoConnection(db, { companyId: accounts[0].id, domains });
  const { clientId: client } = await addClient(db, { companyId: partnerId, name: "Back office" });
  const { id: service } = await addService(world);
  ids = { subscription, event, connection, client, service: String(service) };
  await db.sql`update companies set external_id = 'crm-p' where id = ${partnerId}`;
  await db.sql`update companies set external_id = 'crm-a' where id = ${accounts[0].id}`;
  await db.sql`update users set external_id = 'crm-u' where id = ${accounts[0].user.id}`;
  await db.sql`update stores set external_id = 'crm-s' where id = ${accounts[0].storeIds[0] ?? 0}`;
});

const search = (q: string, as: Who = "root"): Promise<Answer> =>
  world.api.call("POST", "/admin/search", { token: world.tokens[as], body: { q } });

const hits = async (q: string) => (await search(q)).body["data"] as Hit[];
const kindsOf = async (q: string) =>
  [...new Set((await hits(q)).map((one) => one.kind))].toSorted();

const partner = () => world.tenants.partners[0];
const account = () => partner().accounts[0];

/** Texts with the one record that each of them finds. */
const ONE: readonly (readonly [q: () => string, kind: string, id: () => string | number])[] = [
  [() => "crm-p", "partner", () => partner().id],
  [() => "crm-a", "account", () => account().id],
  [() => "crm-s", "store", () => account().storeIds[0] ?? 0],
  [() => "crm-u", "user", () => account().user.id],
  [() => "  P1-A1 EAST ", "store", () => account().storeIds[0] ?? 0],
  [() => account().user.email.toUpperCase(), "user", () => account().user.id],
  [() => "wareh", "subscription", () => ids.subscription],
  [() => "/HOOKS/crm", "subscription", () => ids.subscription],
  [() => ids.subscription.toLowerCase(), "subscription", () => ids.subscription],
  [() => ids.event, "event", () => ids.event],
  [() => "mail.found", "sso_connection", () => ids.connection],
  [() => ids.connection, "sso_connection", () => ids.connection],
  [() => ids.client, "oauth_client", () => ids.client],
  [() => "back off", "oauth_client", () => ids.client],
  [() => ids.service, "service", () => ids.service],
];

describe("the search of operators", () => {
  test.each(ONE)("finds by text %# one record of its kind", async (q, kind, id) => {
    const found = (await hits(q())).filter((one) => one.kind === kind);
    expect(found.map((one) => one.id)).toEqual([String(id())]);
  });

  test("finds records of several kinds by a part of a name, at most five of each", async () => {
    expect(await kindsOf("p1")).toEqual(["account", "partner", "store", "user"]);
    expect((await hits("p")).filter(({ kind }) => kind === "user")).toHaveLength(5);
    expect(await hits("no such thing")).toEqual([]);
    expect(await hits("  ")).toEqual([]);
    expect(await hits("50%")).toEqual([]);
  });

  test("finds by a number the records of each kind with this id, these first", async () => {
    const [first] = await hits(String(account().id));
    expect([first?.kind, first?.id]).toEqual(["account", String(account().id)]);
  });

  test("names the partner and the subscription of an event, also of one that is not sent yet", async () => {
    const { id: partnerId } = partner();
    const event = { kind: "event", id: ids.event, partner_id: partnerId };
    expect(await hits(ids.event)).toEqual([
      expect.objectContaining({ ...event, subscription_id: ids.subscription }),
    ]);
    await world.ask("DELETE", `/${ids.subscription}`);
    expect(await hits(ids.event)).toEqual([
      expect.objectContaining({ ...event, subscription_id: null }),
    ]);
    expect(await hits(ids.subscription)).toEqual([]);
  });

  test("finds no deleted service, no integration, and shows no secret", async () => {
    const { id } = await addService(world);
    await world.api.call("DELETE", `/admin/services/${id}`, { token: world.tokens.root });
    expect((await hits(String(id))).map(({ kind }) => kind)).not.toContain("service");
    const { body } = await world.api.call("POST", "/partner/integrations", {
      token: world.tokens.owner,
      body: { name: "Nightly sync", scopes: ["webhooks:read"] },
    });
    expect(body["id"]).toBeNumber();
    expect(await hits("Nightly sync")).toEqual([]);
    expect((await search("found")).text).not.toContain("sealed");
  });

  test("is for operators in person, leaves one row an hour, and refuses longer texts", async () => {
    for (const as of ["owner", "account", "location"] as const)
      expect((await search("p1", as)).status).toBe(403);
    expect((await search("x".repeat(201))).status).toBe(422);
    expect((await search("")).status).toBe(422);
    const rows = await world.audit("TENANT_READ");
    const own = rows.filter(({ details }) => JSON.stringify(details).includes('"search"'));
    expect(own.map(({ details }) => details)).toEqual([{ partner_id: null, kind: "search" }]);
  });
});
