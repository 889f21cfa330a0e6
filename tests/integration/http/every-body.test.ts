import { beforeAll, describe, expect, test } from "bun:test";

import type { TObject, TSchema } from "@sinclair/typebox";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { created, report, reviewIdOf, send } from "../../support/factory.ts";
import { HOSTILE_EMAILS, HOSTILE_NAMES } from "../../support/hostile-texts.ts";
import { addIntegration } from "../../support/callers.ts";
import { challenged, withApp } from "../../support/factors.ts";
import { addClient } from "../../support/oauth.ts";
import { addSsoConnection, addUser } from "../../support/tenants.ts";
import { addService, startWebhooks, type Who } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

/*
 * Elysia silently skips the validation of a body if the parser of its route is "none". So every route with a body must
 * return a 422 for an unknown field, and for a value of another type in each field.
 */
const world = fixture(startWebhooks);

describe("every route with a body", () => {
  test("declares its schema", () => {
    expect(routes.length).toBeGreaterThan(40);
    for (const { method, path, body } of routes)
      expect([method, path, typeof body?.properties]).toEqual([method, path, "object"]);
  });

  test("names an unknown field", async () => {
    for (const route of routes) {
      // Login ignores unknown fields (contract 2.7).
      if (route.path === "/login") continue;
      expect([route.path, await errorsOf(route, { surplus: 1 })]).toEqual([
        route.path,
        expect.objectContaining({ surplus: expect.any(Array) }),
      ]);
    }
  });

  test("names each field with a value of another type", async () => {
    for (const route of routes) {
      const fields = Object.entries(route.body.properties);
      if (fields.length === 0) continue;
      const body = Object.fromEntries(fields.map(([name, schema]) => [name, mistaken(schema)]));
      const errors = Object.keys(await errorsOf(route, body)).map((name) => name.split(".")[0]);
      expect([route.path, errors]).toEqual([route.path, expect.arrayContaining(Object.keys(body))]);
    }
  });
});

describe("every route that sets an address or a name", () => {
  test("refuses what cannot be mailed, and what hides or shows nothing", async () => {
    const setters = routes
      .filter(({ path }) => !LOOK_UPS.test(path))
      .flatMap((route) => textsIn(route.body).map((text) => ({ route, ...text })));
    expect(setters.length).toBeGreaterThan(30);
    for (const { route, field, bodyWith, isAddress } of setters)
      for (const text of isAddress ? HOSTILE_EMAILS : HOSTILE_NAMES) {
        const errors = Object.keys(await errorsOf(route, bodyWith(text)));
        // A list that may be null is named as a whole where a text in it is too long.
        const isNamed = errors.some((one) => one === field || `${one}.0` === field);
        expect([route.method, route.path, field, text, errors, isNamed]).toEqual([
          route.method,
          route.path,
          field,
          text,
          errors,
          true,
        ]);
      }
  });
});

/** Routes on which an email says who asks, or a name what is deleted, and sets nothing. */
const LOOK_UPS = /^\/(?:login|auth\/discover|email-otp\/\w+|admin\/\w+\/:id\/deletion)$/;
const ADDRESS = /(?:^|_)emails?$|^recipients$/;
const NAME = /(?:^|_)names?$|^label$|^stores$/;

interface TextField {
  /** The name of the field in `errors`. */
  readonly field: string;
  readonly isAddress: boolean;
  readonly bodyWith: (text: string) => unknown;
}

/** Finds the texts of a body that hold an address or a name, by the names of their fields. */
function textsIn(schema: TSchema, name = "", kind = ""): TextField[] {
  const options: readonly TSchema[] = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema];
  return options.flatMap((one): TextField[] => {
    const properties = Object.entries<TSchema>(one["properties"] ?? {});
    // The constants of an object tell which one of several it is.
    const constants = Object.fromEntries(
      properties.flatMap(([key, { const: value }]) => (value === undefined ? [] : [[key, value]])),
    );
    if (one["type"] === "object")
      return properties.flatMap(([key, inner]) =>
        textsIn(inner, name === "" ? key : `${name}.${key}`, key).map((text) => ({
          ...text,
          bodyWith: (value: string) => ({ ...constants, [key]: text.bodyWith(value) }),
        })),
      );
    if (one["type"] === "array")
      return textsIn(one["items"], `${name}.0`, kind).map((text) => ({
        ...text,
        bodyWith: (value: string) => [text.bodyWith(value)],
      }));
    const isAddress = ADDRESS.test(kind);
    if (one["type"] !== "string" || !(isAddress || NAME.test(kind))) return [];
    return [{ field: name, isAddress, bodyWith: (value: string) => value }];
  });
}

interface Route {
  readonly method: string;
  /** The path below `{base_url}`. */
  readonly path: string;
  readonly body: TObject;
}

/** Routes with forms, which are validated by RFC 6749 instead of a schema. */
const FORMS = /^\/oauth\//;

let routes: readonly Route[];

const ids: Record<string, string> = {};

/** The tokens for routes that take one of their own kind. */
const tokens = new Map<string, string>();

beforeAll(async () => {
  routes = createApp(world.api.deps)
    .routes.filter(({ method, path }) => /^(POST|PATCH|PUT)$/.test(method) && !FORMS.test(path))
    .map(({ method, path, hooks }) => ({
      method,
      path: path.startsWith(BASE_PATH) ? path.slice(BASE_PATH.length) : path,
      body: hooks.body,
    }));
  const { db } = world.database;
  const [{ id: partner, accounts, owner }] = world.tenants.partners;
  await report(world.api, world.provider, [created(world.siteId, "known")]);
  ids["/partner/webhooks"] = (await world.subscribe()).id;
  const [event = ""] = await world.emit(1);
  ids["eventId"] = event;
  ids["/account/reviews"] = String(await reviewIdOf(db, "known"));
  ids["/partner/oauth-clients"] = (await addClient(db, { companyId: partner })).clientId;
  ids["/sso/clients"] = ids["/partner/oauth-clients"];
  ids["/admin/sso-connections"] = await addSsoConnection(db, {
    companyId: partner,
    domains: ["own.example.com"],
  });
  ids["/admin/users"] = String(owner.id);
  ids["/partner/users"] = String(owner.id);
  ids["/admin/accounts"] = String(accounts[0].id);
  ids["/admin/partners"] = String(partner);
  for (const path of ["/admin/providers", "/admin/plans"]) {
    const { body } = await world.api.call("GET", path, { token: world.tokens.root });
    const [first] = body["data"] as { id: number }[];
    ids[path] = String(first?.id);
  }
  ids["/admin/stores"] = String(accounts[0].storeIds[0]);
  ids["/admin/store-review-sites"] = String(world.siteId);
  ids["provider"] = world.provider.slug;
  const { user: waiting } = await withApp(
    world,
    await addUser(db, { companyId: partner, role: "partner_admin", email: "waits@p1.test" }),
  );
  tokens.set("/login/second-factor", (await challenged(world.api, waiting)).token);
  tokens.set("/account/security", await world.api.login(accounts[0].owner.email));
  tokens.set("/reset-password", await world.api.login(world.tenants.partners[1].owner.email));
  const service = await addService(world, ["actions:write", "tokens:introspect"]);
  ids["/admin/services"] = String(service.id);
  ids["/partner/integrations"] = String((await addIntegration(world.api, world.tokens.owner)).id);
  for (const path of ["/platform/actions", "/platform/introspect"]) tokens.set(path, service.token);
});

function whoAsks(path: string): Who {
  if (path.startsWith("/partner")) return "owner";
  if (path.startsWith("/account/reviews")) return "account";
  if (path.startsWith("/admin") || path.startsWith("/sso")) return "root";
  return "owner";
}

function fill(path: string): string {
  const [base = ""] = path.split("/:");
  return path
    .replace(":id", ids[base] ?? "x")
    .replace(":eventId", ids["eventId"] ?? "x")
    .replace(":subscriptionId", ids["/partner/webhooks"] ?? "x")
    .replace(":externalId", "new")
    .replace(":provider", ids["provider"] ?? "x");
}

/** Returns the field errors of the response, which must be a 422. */
async function errorsOf({ method, path }: Route, body: unknown): Promise<Record<string, unknown>> {
  const token = tokens.get(path.split("/:")[0] ?? "") ?? world.tokens[whoAsks(path)];
  const answer = path.startsWith("/providers/")
    ? await send(world.api, world.provider, body)
    : await world.api.call(method, fill(path), { token, body });
  expect([method, path, answer.status, answer.text]).toEqual([method, path, 422, answer.text]);
  return fieldsOf(answer.body["errors"]);
}

/** Makes a value of a type that the schema does not accept. */
function mistaken(schema: TSchema): unknown {
  const types = (Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema]).map(
    ({ type, const: value }: { type?: string; const?: unknown }) => type ?? typeof value,
  );
  return types.includes("object") || types.includes("array") ? 7 : { surprise: true };
}
