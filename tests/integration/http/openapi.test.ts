import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createConfig, lintFromString, type NormalizedProblem } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

import { createApp } from "../../../src/app.ts";
import eventExamples from "../../../src/docs/event-examples.json";
import { BASE_PATH } from "../../../src/http/access.ts";
import type { Answer } from "../../support/api.ts";
import { breakingChanges } from "../../support/breaking-changes.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("the document", () => {
  test("stays below 400 kB", () => {
    expect(Buffer.byteLength(text)).toBeLessThan(400_000);
  });

  test("is valid OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(text));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(document.openapi).toBe("3.1.0");
  });

  test("has no error and no warning of a linter", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    // The server of the test is localhost, which the linter reports as a leftover.
    const source = text.replaceAll("http://localhost:3000", "https://reviews.partner.test");
    const problems: NormalizedProblem[] = await lintFromString({ source, config });
    // The paths below `/external` have the method PUT, and those that they resemble never do.
    const isExternal = ({ message }: NormalizedProblem) =>
      message.includes("/external/{externalId}");
    const others = problems.filter((one) => !isExternal(one));
    expect(others.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  });

  test("is the same after every route was called", async () => {
    const app = createApp(world.api.deps);
    const ask = (path: string, method = "GET") =>
      app.handle(new Request(`http://localhost${path}`, { method }));
    for (const { path, method } of operations())
      if (!path.startsWith("/openapi"))
        await ask(path.replaceAll(/\{\w+\}/g, "1"), method.toUpperCase());
    const answer = await ask("/openapi.json");
    expect([answer.status, (await answer.text()) === text]).toEqual([200, true]);
  });

  test("is the same as YAML", async () => {
    const answer = await world.api.call("GET", "/openapi.yaml", { root: true });
    expect(answer.headers.get("content-type")).toBe("application/yaml");
    expect(Bun.YAML.parse(answer.text)).toEqual(JSON.parse(text));
  });

  test("has the version that its changelog begins with", () => {
    const changelog = readFileSync(join(ROOT, "docs/openapi-changelog.md"), "utf8");
    expect(/^## (\S+)/m.exec(changelog)?.[1]).toBe(document.info.version);
  });

  test("removes nothing from its baseline, and adds what docs/openapi-changelog.md tells", () => {
    const baseline = readFileSync(BASELINE, "utf8");
    const changelog = readFileSync(join(ROOT, "docs/openapi-changelog.md"), "utf8");
    const known = namesIn(JSON.parse(baseline));
    const added = [...namesIn(document)].filter((name) => !known.has(name));
    expect(added.filter((name) => !changelog.includes(name))).toEqual([]);
    const isWriting = process.env["OPENAPI_BASELINE"] === "write";
    if (isWriting) writeFileSync(BASELINE, text);
    const { info } = JSON.parse(baseline);
    const isNextMajor = info.version.split(".")[0] !== document.info.version.split(".")[0];
    const changes = breakingChanges(JSON.parse(baseline), JSON.parse(text));
    expect(isNextMajor ? [] : changes).toEqual([]);
    // An addition that the baseline lacks could be removed later. The texts are too long to print.
    const hint = "Describe the addition there, and run this file with OPENAPI_BASELINE=write.";
    expect(isWriting || baseline === text ? "" : hint).toBe("");
  });

  test("has only patterns that generators keep", () => {
    const patterns = [...text.matchAll(/"pattern":"((?:[^"\\]|\\.)*)"/g)].map(([, one]) => one);
    expect(patterns.length).toBeGreaterThan(20);
    expect(patterns.filter((one) => one?.includes("ud800"))).toEqual([]);
  });

  test("describes every route of the server and no other", () => {
    const served = createApp(world.api.deps)
      .routes.filter(({ method, path }) => !REFUSED.test(method) && !PAGES.test(path))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    const described = operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(described.toSorted()).toEqual([...new Set(served)].toSorted());
  });

  test("describes every field and parameter whose name does not say everything", () => {
    const silent: string[] = [];
    const isSilent = (name: string, description: unknown) =>
      description === undefined && !SPEAKING_NAMES.test(name);
    const look = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [key, one] of Object.entries(value)) {
        if (key === "properties")
          for (const [name, field] of Object.entries(one as Record<string, Schema>))
            if (isSilent(name, found("schemas", field)["description"]))
              silent.push(`${path}/${name}`);
        if (key === "parameters" && Array.isArray(one))
          for (const parameter of one as Parameter[]) {
            const { name, description } = found("parameters", parameter);
            if (isSilent(name, description)) silent.push(`${path}/${name}`);
          }
        if (key !== "example" && key !== "examples") look(one, `${path}/${key}`);
      }
    };
    look(document, "");
    expect(silent).toEqual([]);
  });

  test("declares the scope that an operation needs, for both kinds of token", () => {
    for (const { path, operation } of ofApi()) {
      if (!hasToken(operation)) continue;
      const [bearer, oauth] = securityOf(operation);
      // No OAuth client gets the token of a service.
      if (path.includes("/platform/")) {
        expect([path, oauth]).toEqual([path, undefined]);
        continue;
      }
      expect([path, oauth?.["oauth"]]).toEqual([path, bearer?.["bearer"]]);
    }
    const needed = (path: string, method: string) => {
      const operation = document.paths[BASE_PATH + path]?.[method];
      return operation && securityOf(operation)[0];
    };
    expect(needed("/partner/webhooks", "get")).toEqual({ bearer: ["webhooks:read"] });
    expect(needed("/partner/webhooks", "post")).toEqual({ bearer: ["webhooks:write"] });
    expect(needed("/account/reviews/{id}/flag", "post")).toEqual({ bearer: ["reviews:write"] });
    expect(needed("/verify-token", "get")).toEqual({ bearer: [] });
    expect(needed("/partner/oauth-clients", "get")).toEqual({ bearer: ["clients:write"] });
    expect(needed("/partner/audit-log", "get")).toEqual({ bearer: ["*"] });
    expect(needed("/login", "post")).toBeUndefined();
  });

  test("describes the body of every event in both modes, and their headers", () => {
    const bodies = { full: schemaOf("event"), minimal: schemaOf("minimalEvent") };
    for (const [event, one] of Object.entries(eventExamples)) {
      expectFit(bodies.full, JSON.parse(one.full), event);
      expectFit(bodies.minimal, JSON.parse(one.minimal), event);
    }
    const { event } = document.webhooks;
    const names = event?.post.parameters?.map((one) => found("parameters", one).name);
    expect(names).toContain("X-SVC-Signature");
    const { discriminator } = found("schemas", bodies.full) as {
      discriminator: { mapping: object };
    };
    expect(Object.keys(discriminator.mapping)).toEqual(Object.keys(eventExamples));
  });

  test("names each operation once, with a tag, a summary and a description", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { operation } of operations()) {
      expect(operation.summary).not.toBe("");
      expect([operation.operationId, operation.description?.length > 5]).toEqual([
        operation.operationId,
        true,
      ]);
      expect(operation.tags).toHaveLength(1);
    }
  });

  test("gives every response with a body a schema and a matching example", () => {
    for (const { path, method, operation } of ofApi())
      for (const [status, { content, description }] of responsesOf(operation)) {
        expect(description).not.toBe("");
        if (status === "204") continue;
        for (const one of Object.values(content ?? {})) {
          const values = examplesOf(one);
          if (isExtension(one.schema)) continue;
          expect([path, method, status, values.length > 0]).toEqual([path, method, status, true]);
          for (const value of values) expectFit(one.schema, value, `${method} ${path} ${status}`);
        }
      }
  });

  test("has examples of fields, parameters and bodies that match their schemas", () => {
    let checked = 0;
    const look = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      const { schema = value, example, examples } = value as Partial<Content[string]>;
      for (const one of [...(example === undefined ? [] : [example]), ...(examples ?? [])]) {
        expectFit(schema as Schema, one, path);
        checked += 1;
      }
      for (const [key, one] of Object.entries(value))
        if (key !== "example" && key !== "examples") look(one, `${path}/${key}`);
    };
    look(document, "");
    expect(checked).toBeGreaterThan(300);
  });

  test("has responses in its examples that fit the requests", () => {
    const others: unknown[] = [];
    for (const { path, method, operation } of ofApi()) {
      const { requestBody } = operation;
      const sent = requestBody && found("requestBodies", requestBody).content[JSON_TYPE];
      for (const [status, { content }] of responsesOf(operation)) {
        if (!status.startsWith("2")) continue;
        const [request, response] = [sent, content?.[JSON_TYPE]].map((one) =>
          composed(one?.schema),
        );
        for (const [field, value] of Object.entries(request ?? {}))
          if (
            response !== undefined &&
            field in response &&
            isPlain(value) &&
            isPlain(response[field]) &&
            !Bun.deepEquals(response[field], value)
          )
            others.push([method, path, field, value, response[field]]);
      }
    }
    expect(others).toEqual([]);
  });

  test("has values in its examples that say something", () => {
    const all = Object.values(document.components.schemas).flatMap((one) => one.examples ?? []);
    expect(JSON.stringify(all)).not.toMatch(/[:[]"(?:string|text|foo|bar|x+)"|lorem/i);
  });

  test("gives every parameter in a path or a query an example", () => {
    const all = operations().flatMap(({ operation: { parameters = [] } }) => parameters);
    const without = all
      .map((one) => found("parameters", one))
      .filter((one) => one.in !== "header" && one.example === undefined);
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  test("lists every error that the checks can return", () => {
    for (const { path, method, operation } of ofApi()) {
      const statuses = Object.keys(operation.responses);
      const label = `${method} ${path}`;
      const has = (status: string) =>
        expect([label, statuses]).toEqual([label, expect.arrayContaining([status])]);
      if (hasToken(operation)) ["401", "403"].forEach(has);
      if (operation.requestBody !== undefined) ["400", "422"].forEach(has);
      if (hasToken(operation) && path.includes("{")) has("404");
      if (!path.includes("/providers/")) has("429");
    }
  });
});

function schemaOf(webhook: string): Schema {
  return document.webhooks[webhook]?.post.requestBody?.content["application/json"]?.schema ?? {};
}

function expectFit(schema: Schema, value: unknown, label: string): void {
  const validate = validatorOf(schema);
  const good = validate(value);
  expect([label, good ? [] : validate.errors]).toEqual([label, []]);
}

/** Validates a response by the schema of its status. A status that is not documented is an error. */
function expectDocumented({ path, method, operation }: Listed, answer: Answer): void {
  const label = `${method} ${path} ${answer.status}: ${answer.text.slice(0, 300)}`;
  const documented = Object.fromEntries(responsesOf(operation))[String(answer.status)];
  expect([label, documented !== undefined]).toEqual([label, true]);
  expect([label, answer.status < 500]).toEqual([label, true]);
  const [[type, { schema }] = ["", { schema: {} }]] = Object.entries(documented?.content ?? {});
  if (type === "") return expect(answer.text).toBe("");
  expect([label, answer.headers.get("content-type")]).toEqual([label, type]);
  expectFit(schema, type === "application/json" ? answer.body : answer.text, label);
}

/** Operations that end the token with which they are called. */
const ENDS_TOKENS =
  /logout|revoking|activate$|reset-password|(sessions|tokens)\/|api-token|deletion$|\}\/second-factors$/;

test("every operation answers strangers and each kind of user as the document says", async () => {
  const { id } = await world.subscribe();
  const [eventId = ""] = await world.emit(1);
  const known: Readonly<Record<string, string>> = { "{eventId}": eventId, "{provider}": "google" };
  const idIn = (path: string) => (path.includes("/webhooks/{id}") ? id : "1");
  const all = ofApi().filter(({ path }) => !path.endsWith("stream"));
  const [reads, others] = [true, false].map((isRead) =>
    all.filter(({ method }) => (method === "get") === isRead),
  );
  const { owner, account, root } = world.tokens;
  // Reads come first, because others delete what they read.
  for (const listed of [...(reads ?? []), ...(others ?? [])]) {
    const { path, method, operation } = listed;
    const users = ENDS_TOKENS.test(path)
      ? [await world.api.login(world.tenants.partners[1].owner.email)]
      : [owner, account, root];
    const filled = path.replaceAll(/\{\w+\}/g, (name) => known[name] ?? idIn(path));
    const bodies = operation.requestBody === undefined ? [undefined] : ["{", {}];
    for (const url of new Set([filled, path.replaceAll(/\{\w+\}/g, "x")]))
      for (const token of [undefined, "nonsense", ...users])
        for (const body of bodies)
          expectDocumented(
            listed,
            await world.api.call(method.toUpperCase(), url.slice(BASE_PATH.length), {
              token,
              body,
            }),
          );
  }
});

test("a locked sign-in has the field errors that its description names", async () => {
  const attempt = { email: "nobody@locked.test", password: "wrong password" };
  for (let wrong = 0; wrong < 5; wrong += 1)
    await world.api.call("POST", "/login", { body: attempt });
  const answer = await world.api.call("POST", "/login", { body: attempt });
  expect([answer.status, answer.body["code"]]).toEqual([429, "account_locked"]);
  const listed = ofApi().find(({ path }) => path === `${BASE_PATH}/login`);
  const content = Object.fromEntries(
    listed === undefined ? [] : responsesOf(listed.operation),
  )[429];
  const { schema = {} } = content?.content?.["application/json"] ?? {};
  const [locked = {}] = (schema["anyOf"] ?? []) as Schema[];
  expect(locked).toEqual({ $ref: "#/components/schemas/ValidationProblem" });
  expectFit(locked, answer.body, "a locked sign-in");
});

describe("operations that create, change and end records", () => {
  /** Makes a request that must succeed, and checks its response against the description. */
  async function done(
    token: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Record<string, unknown>> {
    const listed = ofApi().find(
      (one) =>
        one.method === method.toLowerCase() &&
        new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(BASE_PATH + path),
    );
    if (listed === undefined) throw new Error(`${method} ${path} is not described.`);
    const answer = await world.api.call(method, path, {
      token,
      ...(body !== undefined && { body }),
    });
    expect([method, path, answer.status < 300, answer.text]).toEqual([
      method,
      path,
      true,
      answer.text,
    ]);
    expectDocumented(listed, answer);
    return answer.body;
  }

  test("an administrator's users, companies and review sites", async () => {
    const { root } = world.tokens;
    const user = await done(root, "POST", "/admin/users", {
      company_id: world.tenants.partners[0].id,
      email: "described@p1.test",
      name: "Described",
      role: "partner_admin",
    });
    for (const step of ["invite", "unlock", "deactivate", "activate"])
      await done(root, "POST", `/admin/users/${String(user["id"])}/${step}`);
    const partner = await done(root, "POST", "/admin/partners", { name: "Described" });
    const plan = await done(root, "POST", "/admin/plans", { name: "Described" });
    const account = await done(root, "POST", "/admin/accounts", {
      name: "Described",
      partner_id: partner["id"],
      plan_id: plan["id"],
    });
    for (const step of ["deactivate", "activate"]) {
      await done(root, "POST", `/admin/accounts/${String(account["id"])}/${step}`);
      await done(root, "POST", `/admin/partners/${String(partner["id"])}/${step}`);
    }
    const store = { account_id: account["id"], name: "Described" };
    const { id } = await done(root, "POST", "/admin/stores", store);
    const provider = { slug: "described", name: "Described" };
    const made = await done(root, "POST", "/admin/providers", provider);
    await done(root, "POST", `/admin/providers/${String(made["id"])}/secret`);
    await done(root, "POST", "/admin/store-review-sites", {
      store_id: id,
      provider_id: made["id"],
    });
  });

  test("a partner's clients, tokens, integrations and subscriptions", async () => {
    const { owner } = world.tokens;
    const client = await done(owner, "POST", "/partner/oauth-clients", {
      name: "Described",
      redirect_uris: ["https://app.example/callback"],
      grant_types: ["authorization_code", "refresh_token"],
    });
    const path = `/partner/oauth-clients/${String(client["client_id"])}`;
    await done(owner, "PATCH", path, { name: "Described anew" });
    await done(owner, "POST", `${path}/secret`);
    await done(owner, "DELETE", path);
    const made = await done(owner, "POST", "/account/personal-access-tokens", { name: "One" });
    const { id: tokenId } = made["token"] as { id: string };
    await done(owner, "DELETE", `/account/personal-access-tokens/${tokenId}`);
    await done(owner, "POST", "/account/api-token");
    await done(owner, "POST", "/account/api-token/regenerate");
    await done(owner, "DELETE", "/account/api-token");
    const machine = { name: "Described", scopes: ["webhooks:read"] };
    const integration = await done(owner, "POST", "/partner/integrations", machine);
    const at = `/partner/integrations/${String(integration["id"])}`;
    await done(owner, "PATCH", at, { scopes: ["reviews:read"] });
    await done(owner, "POST", `${at}/api-token`);
    await done(owner, "GET", `${at}/api-token`);
    await done(owner, "POST", `${at}/api-token/regenerate`);
    await done(owner, "DELETE", `${at}/api-token`);
    await done(owner, "DELETE", at);
    const { id } = await world.subscribe();
    const subscription = `/partner/webhooks/${id}`;
    await done(owner, "PATCH", subscription, { label: "Described" });
    await done(owner, "POST", `${subscription}/rotate-secret`);
    await done(owner, "POST", `${subscription}/test`, { event: "review_received" });
    await done(owner, "DELETE", subscription);
  });

  test("an account's actions on a review", async () => {
    await world.emit(1);
    const token = world.tokens.account;
    const { data } = await done(token, "GET", "/account/reviews");
    const [review] = data as { id: number }[];
    const path = `/account/reviews/${review?.id ?? 0}`;
    await done(token, "POST", `${path}/notes`, { body: "A note." });
    await done(token, "POST", `${path}/response`, { body: "A response." });
    await done(token, "DELETE", `${path}/response`);
    await done(token, "POST", `${path}/flag`, { reason: "Spam" });
    await done(token, "POST", `${path}/flag-status`, { status: "withdrawn" });
    await done(token, "GET", path);
  });
});

let document: Document;
let ajv: Ajv2020;

/** Compiles a schema of the document so that its references resolve. */
const compiled = new Map<string, ValidateFunction>();

const ofApi = () => operations().filter(({ path }) => path.startsWith(BASE_PATH));

const ROOT = join(import.meta.dir, "../../..");
const BASELINE = join(ROOT, "tests/golden/openapi-baseline.json");

/** Lists the operations of a description, such as `POST /login`, and the values of events. */
function namesIn({ paths, components }: Document): Set<string> {
  const routes = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path.replace(BASE_PATH, "")}`),
  );
  const { enum: events } = components.schemas["EventValue"] as unknown as { enum: string[] };
  return new Set([...routes, ...events]);
}

type Security = readonly Readonly<Record<string, readonly string[]>>[];

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security?: Security;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, ApiResponse>>;
}

interface RequestBody {
  readonly $ref?: string;
  readonly required?: boolean;
  readonly content: Content;
}

interface Parameter {
  readonly description?: string;
  readonly $ref?: string;
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
}

type Schema = Readonly<Record<string, unknown>>;

type Content = Readonly<
  Record<
    string,
    {
      schema: Schema;
      example?: unknown;
      examples?: readonly unknown[];
    }
  >
>;

interface ApiResponse {
  readonly $ref?: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Content;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly security: Security;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, ApiResponse>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly requestBodies: Readonly<Record<string, RequestBody>>;
  };
}

/** Resolves a reference to a component; other values are returned as they are. */
function found<T extends { readonly $ref?: unknown }>(
  kind: "schemas" | "parameters" | "requestBodies",
  one: T,
): T {
  const name = typeof one.$ref === "string" ? (one.$ref.split("/").at(-1) ?? "") : "";
  return (document.components[kind][name] ?? one) as T;
}

/** Returns whether a schema extends another one, which has the example. */
const isExtension = (schema: Schema): boolean => "allOf" in found("schemas", schema);

/** Lists the examples of a schema's component and that beside it. Without any, lists those of its alternatives. */
function examplesOf({ schema, example }: Content[string]): unknown[] {
  const { examples, anyOf } = found("schemas", schema);
  const own = [example, ...(Array.isArray(examples) ? examples : [])].filter(
    (one) => one !== undefined,
  );
  if (own.length > 0 || !Array.isArray(anyOf)) return own;
  return (anyOf as Schema[]).flatMap((one) => examplesOf({ schema: one }));
}

/** Returns whether a value is a scalar or a list of scalars, which a response repeats in the same form. */
const isPlain = (value: unknown): boolean =>
  [value].flat().every((one) => typeof one !== "object" || one === null);

/** Returns the example of an object, also of one that extends another. */
function composed(schema: Schema = {}): Schema {
  const { allOf = [], examples = [] } = found("schemas", schema);
  return Object.assign({}, ...(allOf as Schema[]).map(composed), (examples as unknown[])[0]);
}

/** Lists the responses of an operation with references resolved. */
function responsesOf({ responses }: Operation): [string, ApiResponse][] {
  return Object.entries(responses).map(([status, one]) => {
    const name = one.$ref?.split("/").at(-1) ?? "";
    return [status, document.components.responses[name] ?? one];
  });
}

let text: string;

beforeAll(async () => {
  const answer = await world.api.call("GET", "/openapi.json", { root: true });
  text = answer.text;
  document = answer.body as unknown as Document;
  ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats(ajv);
  ajv.addSchema(document, "api");
});

function validatorOf(schema: Schema): ValidateFunction {
  const key = JSON.stringify(schema);
  let validate = compiled.get(key);
  if (validate === undefined) {
    validate = ajv.compile(JSON.parse(key.replaceAll('"#/components/', '"api#/components/')));
    compiled.set(key, validate);
  }
  return validate;
}

interface Listed {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

function operations(): Listed[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
}

const securityOf = ({ security = document.security }: Operation) => security;

const hasToken = (operation: Operation) => securityOf(operation).some((one) => "bearer" in one);

const JSON_TYPE = "application/json";

/** Names of fields and parameters that need no description. */
const SPEAKING_NAMES =
  /^(\w+_id|\w+Id|at|created_at|data|domain|email|event|expires_at|features|id|invited_by|is_active|key|logo_url|name|occurred_at|partner_name|plan|primary_color|role|store_name|stores|token|type|updated_at|user_name|value)$/;

/** Paths of pages for people. */
const PAGES = /^\/(docs\b|dashboard\b|embed\b|$)/;

/** Methods that are registered only to be rejected: all others of a path, and HEAD where GET has an effect. */
const REFUSED = /^(ALL|HEAD)$/;
