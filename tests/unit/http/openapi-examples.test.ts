import { describe, expect, test } from "bun:test";

import { completeExamples, exampleInPath, exampleOf } from "../../../src/http/openapi/examples.ts";
import type { Json } from "../../../src/http/openapi/schemas.ts";

const store = {
  type: "object",
  required: ["store_id", "label"],
  properties: {
    store_id: { type: "integer" },
    label: { type: "string" },
    deleted_at: { type: ["string", "null"], format: "date-time" },
  },
};

describe("the example of a schema", () => {
  test.each<[string, Record<string, Json>, Json]>([
    [
      "is composed of the examples of its fields",
      store,
      { store_id: 3, label: "Reviews to our CRM", deleted_at: null },
    ],
    [
      "gets the fields that it lacks if one of them is required",
      { ...store, examples: [{ label: "Main Street" }] },
      { store_id: 3, label: "Main Street", deleted_at: null },
    ],
    [
      "stays as declared if it lacks only optional fields",
      { ...store, examples: [{ store_id: 4, label: "Main Street" }] },
      { store_id: 4, label: "Main Street" },
    ],
    [
      "keeps null where it is declared",
      {
        ...store,
        properties: { ...store.properties, rate: { type: ["integer", "null"] } },
        examples: [{ rate: null }],
      },
      { store_id: 3, label: "Reviews to our CRM", deleted_at: null, rate: null },
    ],
    [
      "of an extension takes the declared fields before those of the base",
      {
        allOf: [{ ...store, examples: [{ store_id: 4, label: "A" }] }],
        examples: [{ label: "B" }],
      },
      { store_id: 4, label: "B" },
    ],
    [
      "of a body without required fields has two of them",
      { type: "object", additionalProperties: false, properties: store.properties },
      { store_id: 3, label: "Reviews to our CRM" },
    ],
  ])("%s", (_, schema, expected) => {
    expect(exampleOf(schema, { name: "" })).toEqual(expected);
  });

  test("is never a made-up text", () => {
    const schema = { type: "object", properties: { motto: { type: "string" } } };
    expect(() => exampleOf(schema, { name: "" })).toThrow("The text motto has no example.");
  });
});

test("a body has an example, made of those of the schemas that it refers to", () => {
  const schemas: Record<string, Json> = {
    Stores: { type: "array", items: { $ref: "#/components/schemas/Store" } },
    Shop: { allOf: [{ $ref: "#/components/schemas/Store" }, store] },
    Store: { ...store, examples: [{ store_id: 4, label: "A" }] },
    Part: store,
  };
  const components = { schemas, responses: {}, parameters: {}, requestBodies: {} };
  completeExamples(components, new Set(["Stores", "Shop"]));
  expect(schemas["Stores"]).toHaveProperty("examples", [[{ store_id: 4, label: "A" }]]);
  expect(schemas["Shop"]).not.toHaveProperty("examples");
  expect(schemas["Part"]).not.toHaveProperty("examples");
});

test.each([
  ["/partner/webhooks/{id}", "id", "01JWNB9PR0ZV8X2D3F4G5H6J7K"],
  ["/admin/partners/{id}/webhooks/{subscriptionId}", "id", "7"],
  [
    "/admin/partners/{id}/webhooks/{subscriptionId}",
    "subscriptionId",
    "01JWNB9PR0ZV8X2D3F4G5H6J7K",
  ],
  ["/admin/companies/{id}", "id", "7"],
  ["/admin/store-review-sites/{id}", "id", "11"],
])("in %s, {%s} is %s", (path, name, expected) => {
  expect(exampleInPath(path, name)).toBe(expected);
});

test("a path parameter without an example is an error", () => {
  expect(() => exampleInPath("/partner/{motto}", "motto")).toThrow("motto has no example");
});
