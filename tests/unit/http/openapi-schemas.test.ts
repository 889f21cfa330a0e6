import { describe, expect, test } from "bun:test";

import { Type } from "@sinclair/typebox";

import { describeSchema, type Components } from "../../../src/http/openapi/schemas.ts";

describe("a schema with a title", () => {
  test("is among the components once, however often it is described", () => {
    const components = nothing();
    const twice = [store, Type.Array(store)].map((one) => describeSchema(one, components));
    const reference = { $ref: "#/components/schemas/Store" };
    expect(twice).toEqual([reference, { type: "array", items: reference }]);
    expect(Object.keys(components.schemas)).toEqual(["Store"]);
  });

  test("is rejected if a different schema has its title, such as one that is derived from it", () => {
    const components = nothing();
    describeSchema(store, components);
    const derived = Type.Omit(store, ["name"]);
    expect(() => describeSchema(derived, components)).toThrow("Two schemas are titled Store.");
    const renamed = describeSchema(Type.Omit(store, ["name"], { title: "StoreId" }), components);
    expect(renamed).toEqual({ $ref: "#/components/schemas/StoreId" });
  });
});

const nothing = (): Components => ({
  schemas: {},
  responses: {},
  parameters: {},
  requestBodies: {},
});

const store = Type.Object({ id: Type.Integer(), name: Type.String() }, { title: "Store" });
