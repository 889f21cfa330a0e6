import type { Components, Json } from "./schemas.ts";

type Schema = { readonly [key: string]: Json };

/** Example values of fields by name. Examples of all other fields are derived from their schemas. */
const BY_NAME: Readonly<Record<string, Json>> = {
  id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  eventId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  event_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
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
  external_review_id: "g-7781",
  features: ["webhooks"],
  ip: "203.0.113.7",
  message: "Signed out.",
  name: "Ada Lovelace",
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
  store_name: "Main Street",
  store_review_site_id: 11,
  review_site_id: 2,
  reviewer: "Ada Ünal",
  user_agent: "curl/8.5.0",
  user_id: 31,
  value: "review_received",
  request_body: '{"event":"review_received","event_id":"01JWNB9PR0ZV8X2D3F4G5H6J7K"}',
  stream: 'event: health\ndata: {"pending":0,"held":0}\n\n',
};

const PATTERNS: readonly (readonly [pattern: string, example: string])[] = [
  ["^[0-9a-f]{16}$", "9f86d081884c7d65"],
  ["^[0-9a-f]{64}$", "4f0c8a1de2b37965a4c8d0e1f2037b6c59e8a1d4b7c20f3e6d5a49182b7c0e3f"],
  ["^[0-7][0-9A-HJKMNP-TV-Z]{25}$", "01JWNB9PR0ZV8X2D3F4G5H6J7K"],
];

/** Returns an example value that matches the schema. The same schema always gives the same example. */
export function exampleOf(schema: Schema, name: string, components?: Components): Json {
  const { $ref } = schema;
  if (typeof $ref === "string") {
    const found = components?.schemas[$ref.split("/").at(-1) ?? ""];
    return isSchema(found) ? exampleOf(found, name, components) : null;
  }
  if (Array.isArray(schema["examples"])) return schema["examples"][0] ?? null;
  const known = BY_NAME[name];
  if (known !== undefined && fits(schema, known)) return known;
  // Null is the most plausible example of a nullable text: an active subscription, for example, was never disabled.
  if (typesOf(schema).includes("null") && typesOf(schema).includes("string")) return null;
  if ("const" in schema) return schema["const"] ?? null;
  if (Array.isArray(schema["enum"])) return schema["enum"][0] ?? null;
  if (Array.isArray(schema["allOf"]))
    return Object.assign(
      {},
      ...schema["allOf"].map((one) => isSchema(one) && exampleOf(one, name, components)),
    );
  const choice = Array.isArray(schema["anyOf"]) ? schema["anyOf"][0] : undefined;
  if (isSchema(choice)) return exampleOf(choice, name, components);
  return exampleOfType(schema, name, components);
}

function exampleOfType(schema: Schema, name: string, components?: Components): Json {
  const [type] = typesOf(schema);
  if (type === "object") return exampleObject(schema, components);
  if (type === "array")
    return isSchema(schema["items"]) ? [exampleOf(schema["items"], name, components)] : [];
  if (type === "integer" || type === "number") return Math.max(Number(schema["minimum"] ?? 0), 1);
  if (type === "boolean") return true;
  if (type === "string") return exampleText(schema);
  return type === "null" ? null : {};
}

function exampleObject(schema: Schema, components?: Components): Json {
  const properties = Object.entries(Object(schema["properties"] ?? {}));
  const record = Object.values(Object(schema["patternProperties"] ?? {}));
  const [value] = record;
  if (properties.length === 0 && isSchema(value)) return { name: exampleOf(value, "", components) };
  // A body whose fields are all optional describes a change. Its example has only two fields.
  const isChange = schema["additionalProperties"] === false && schema["required"] === undefined;
  return Object.fromEntries(
    properties
      .slice(0, isChange ? 2 : undefined)
      .flatMap(([key, one]) => (isSchema(one) ? [[key, exampleOf(one, key, components)]] : [])),
  );
}

function exampleText(schema: Schema): string {
  if (schema["format"] === "date-time") return "2026-06-01T12:00:00.000+00:00";
  const found = PATTERNS.find(([pattern]) => schema["pattern"] === pattern);
  return found?.[1] ?? "text".padEnd(Number(schema["minLength"] ?? 0), "x");
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

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
