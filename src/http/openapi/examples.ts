import { type Components, type Json, objectIn } from "./schemas.ts";

type Schema = { readonly [key: string]: Json };

/** Example values of fields by name. Examples of all other fields are derived from their schemas. */
const NAMED_EXAMPLES: Readonly<Record<string, Json>> = {
  id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  subscriptionId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  subscription_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  sessionId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  tokenId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  jti: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  checkId: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  eventId: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  event_id: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  test_event_id: "01JWNB9PR0ZV8X2D3F4G5H6J18",
  pending_test_event_id: null,
  externalId: "crm-4711",
  external_id: "crm-4711",
  identityId: "17",
  key: "01jwnb9pr0zv8x2d3f4g5h6j7k",
  client_id: "3f0e8f7c-5a56-4f1b-9d0c-2f6f3c1f6b7a",
  provider: "google",
  connection: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  label: "Reviews to our CRM",
  webhook_url: "https://partner.example/hooks/reviews",
  domain: "reviews.partner.example",
  logo_url: "https://partner.example/logo.png",
  primary_color: "#1f6feb",
  issuer: "https://login.partner.example",
  redirect_uris: ["https://partner.example/callback"],
  email: "owner@partner.example",
  password: "correct horse battery staple",
  event: "review_received",
  events: null,
  webhook_events: ["review_received", "profanity_detected"],
  next_cursor: null,
  batch_interval_hours: null,
  access_token: "eyJhbGciOiJSUzI1NiJ9…",
  token: "eyJhbGciOiJSUzI1NiJ9…",
  accountId: 12,
  account_id: 12,
  action: "WEBHOOK_CREATED",
  body: "We are sorry, and have changed our schedule.",
  brand_name: "Stellar Reviews",
  category: "review",
  code: "b1946ac92492d2347c6235b4d2611184",
  company_id: 7,
  content: "Late twice. Friendly though.",
  description: "A review site reported a new review.",
  domains: ["partner.example"],
  error_code: null,
  tls_reason: null,
  external_review_id: "g-7781",
  features: ["webhooks"],
  ip: "203.0.113.7",
  message: "Signed out.",
  name: "Zoë O’Neil",
  user_name: "Zoë O’Neil",
  actor_name: "Zoë O’Neil",
  actor_id: 31,
  assigned_user_id: 31,
  impersonator_id: 2,
  impersonator_name: "Robin Okafor",
  otp: "493027",
  partner_id: 7,
  partner_name: "Stellar Partners",
  plan: null,
  reason: "Written about another store",
  request_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  response_excerpt: "ok",
  role: "partner_owner",
  scopes: ["webhooks:read"],
  slug: "google",
  source_platform: "google",
  sso_url: null,
  store_id: 3,
  store_ids: [3],
  plan_id: 4,
  provider_id: 2,
  service_id: 5,
  integration_id: 41,
  inbox_id: 118,
  oauth_client_id: "3f0e8f7c-5a56-4f1b-9d0c-2f6f3c1f6b7a",
  review_id: 42,
  review_history_id: 9_001,
  rate: 2,
  shard: 17,
  dispatcher_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  responded_at: "2026-06-01T14:00:00.000+00:00",
  sequence: 1_042,
  status_code: 200,
  scope: "webhooks:read",
  expires_in: 86_400,
  expires_at: "2026-06-02T12:00:00.000+00:00",
  until: "2026-06-02T12:00:00.000+00:00",
  refresh_token: "eyJhbGciOiJSUzI1NiJ9…",
  rememberMe: false,
  secret_fingerprint: "2611da9ba595fd0e",
  client_secret: "c7a91f04d3be8652a07f1c9e4d6b83205fa1e7c4908d2b6f35c8e0a1749d2b6f",
  store_name: "Main Street",
  store_review_site_id: 11,
  review_site_id: 2,
  reviewer: "Ada Ünal",
  user_agent: "curl/8.5.0",
  user_id: 31,
  value: "review_received",
  request_body: '{"event":"review_received","event_id":"01JWNB9PR0ZV8X2D3F4G5H6J00"}',
  // Parameters of lists and of sign-ins.
  limit: 50,
  cursor: "NDI",
  q: "late",
  response_type: "code",
  redirect_uri: "https://partner.example/callback",
  return_to: "https://partner.example/signed-in",
  state: "af0ifjsldkj",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
  code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
  ticket: "eyJhbGciOiJSUzI1NiJ9…",
  iss: "https://login.partner.example",
  error: "access_denied",
  stream: 'event: health\ndata: {"pending":0,"held":0}\n\n',
};

const PATTERNS: readonly (readonly [pattern: string, example: string])[] = [
  ["^[0-9a-f]{16}$", "2611da9ba595fd0e"],
  ["^[0-9a-f]{64}$", "4f0c8a1de2b37965a4c8d0e1f2037b6c59e8a1d4b7c20f3e6d5a49182b7c0e3f"],
  ["^[0-7][0-9A-HJKMNP-TV-Z]{25}$", "01JWNB9PR0ZV8X2D3F4G5H6J7K"],
];

/** Returns an example of a path parameter. The example for `/partners/{id}` is the id of the example partner. */
export function exampleInPath(path: string, name: string): string {
  const [, collection = ""] = new RegExp(`/([a-z-]+)/\\{${name}\\}`).exec(path) ?? [];
  const one = collection.replace(/ies$/, "y").replace(/s$/, "").replaceAll("-", "_");
  const known = (name === "id" ? NAMED_EXAMPLES[`${one}_id`] : undefined) ?? NAMED_EXAMPLES[name];
  if (typeof known !== "string" && typeof known !== "number")
    throw new Error(`The path parameter ${name} has no example.`);
  return `${known}`;
}

type Schemas = Components["schemas"];

/**
 * Gives the schemas of bodies one example each: the schema's own `examples`, or one that is composed of the examples of
 * its fields. If the declared example of an object lacks a required field, all other fields are added to it. Other
 * schemas, and those that extend another one, get none, because it would repeat the examples of their parts.
 */
export function completeExamples({ schemas }: Components, bodies: ReadonlySet<string>): void {
  for (const [title, schema] of Object.entries(schemas))
    if (isSchema(schema) && ("examples" in schema || (bodies.has(title) && !("allOf" in schema))))
      Object.assign(schema, { examples: [exampleOf(schema, { name: title, schemas })] });
}

interface Context {
  /** The name of the field or component. */
  readonly name: string;
  readonly schemas?: Schemas;
  /** Examples of fields, by name; they take precedence over the examples of their schemas. */
  readonly given?: Schema | undefined;
}

/**
 * Returns an example that matches the schema: the declared one, or one composed of the examples of its fields. Throws
 * for a text without an example, because a generated value would be meaningless.
 */
export function exampleOf(schema: Schema, context: Context): Json {
  const { $ref } = schema;
  if (typeof $ref === "string") {
    const found = context.schemas?.[$ref.split("/").at(-1) ?? ""];
    return isSchema(found) ? exampleOf(found, context) : null;
  }
  const declared = Array.isArray(schema["examples"]) ? schema["examples"][0] : undefined;
  if (declared === undefined) return compose(schema, context);
  if (!isSchema(declared)) return declared;
  const given = { ...declared, ...context.given };
  return isComplete(schema, declared) ? given : compose(schema, { ...context, given });
}

/**
 * Returns whether an example contains every required field. The example of a schema with `allOf` counts as incomplete.
 */
function isComplete(schema: Schema, example: Schema): boolean {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const has = (name: Json) => typeof name === "string" && Object.hasOwn(example, name);
  return !("allOf" in schema) && required.every(has);
}

function compose(schema: Schema, context: Context): Json {
  const known = NAMED_EXAMPLES[context.name];
  if (known !== undefined && fits(schema, known)) return known;
  // Null is the most plausible example of a nullable text: an active subscription, for example, was never disabled.
  if (typesOf(schema).includes("null") && typesOf(schema).includes("string")) return null;
  if ("const" in schema) return schema["const"] ?? null;
  if (Array.isArray(schema["enum"])) return schema["enum"][0] ?? null;
  if (Array.isArray(schema["allOf"]))
    return Object.assign(
      {},
      ...schema["allOf"].map((one) => isSchema(one) && exampleOf(one, context)),
    );
  const choice = Array.isArray(schema["anyOf"]) ? schema["anyOf"][0] : undefined;
  return isSchema(choice) ? exampleOf(choice, context) : composeType(schema, context);
}

function composeType(schema: Schema, context: Context): Json {
  const [type] = typesOf(schema);
  if (type === "object") return composeObject(schema, context);
  if (type === "array")
    return isSchema(schema["items"]) ? [exampleOf(schema["items"], context)] : [];
  if (type === "integer" || type === "number") return Math.max(Number(schema["minimum"] ?? 0), 1);
  if (type === "boolean") return true;
  if (type === "string") return exampleText(schema, context);
  return type === "null" ? null : {};
}

function composeObject(schema: Schema, { schemas = {}, given = {} }: Context): Json {
  const properties = Object.entries(objectIn(schema["properties"]));
  // A body whose fields are all optional describes a change. Its example has two fields.
  const isChange = schema["additionalProperties"] === false && schema["required"] === undefined;
  return Object.fromEntries(
    properties
      .slice(0, isChange ? 2 : undefined)
      .map(([name, one]) => [
        name,
        given[name] === undefined ? exampleOf(objectIn(one), { name, schemas }) : given[name],
      ]),
  );
}

function exampleText(schema: Schema, { name }: Context): string {
  if (schema["format"] === "date-time") return "2026-06-01T12:00:00.000+00:00";
  const found = PATTERNS.find(([pattern]) => schema["pattern"] === pattern);
  if (found === undefined) throw new Error(`The text ${name} has no example.`);
  return found[1];
}

/** Returns whether an example fits the schema's type. Null fits a nullable type. */
function fits(schema: Schema, value: Json): boolean {
  const members = Array.isArray(schema["anyOf"]) ? schema["anyOf"].filter(isSchema) : [schema];
  return members.some((one) => {
    if (Array.isArray(one["enum"])) return one["enum"].includes(value);
    const types = typesOf(one);
    if (value === null) return types.includes("null");
    if (Number.isInteger(value)) return types.includes("integer") || types.includes("number");
    return types.includes(Array.isArray(value) ? "array" : typeof value);
  });
}

function typesOf({ type }: Schema): unknown[] {
  return Array.isArray(type) ? type : [type];
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
