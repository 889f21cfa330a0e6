import { describe, expect, test } from "bun:test";

import { Directory, fault, type Identity } from "../../../src/transfer/directory.ts";

const email = (value: string) => ({ unique: { field: "email", value }, origin: "1" });
const KNOWN: Identity = { id: 5, name: "Ada", externalId: "u-5", ...email("a@x.example") };
const BARE: Identity = { id: 6, externalId: null, ...email("b@x.example") };

const OTHER_ID = "omit id for a new record, and refer to it by external_id";
const MEAN_IT = "omit id and external_id to refer to it; the value must be unique";

describe("a line", () => {
  test.each<[string, Identity, ReturnType<Directory["settle"]>]>([
    ["with a free id", { id: 7, ...email("c@x.example") }, "created"],
    ["with a free external id", { externalId: "u-7", ...email("c@x.example") }, "created"],
    ["with a free unique value", email("c@x.example"), "created"],
    ["with id and external id of a record", { id: 5, externalId: "u-5", origin: "9" }, "present"],
    ["with the id and the origin of a record", { id: 6, origin: "1" }, "present"],
    ["with the external id of a record", { externalId: "u-5", origin: "9" }, "present"],
    ["with the unique value of a record", email("a@x.example"), "present"],
    [
      "without any identity",
      { origin: "1" },
      fault("external_id", "is required for a record without an id"),
    ],
    [
      "with the id of another external id",
      { id: 5, externalId: "u-6", origin: "1" },
      fault("id", `is that of the user 5 "Ada" (external_id u-5): ${OTHER_ID}`),
    ],
    [
      "with an external id for a record without one",
      { id: 6, externalId: "u-6", origin: "1" },
      fault("id", `is that of the user 6: ${OTHER_ID}`),
    ],
    [
      "with the id of another origin",
      { id: 6, origin: "2" },
      fault("id", "is that of the user 6: omit id for a new record"),
    ],
    [
      "with a new id for an external id",
      { id: 7, externalId: "u-5", origin: "1" },
      fault(
        "external_id",
        'is that of the user 5 "Ada" (external_id u-5): send its id, or omit id',
      ),
    ],
    [
      "with a new id for a unique value",
      { id: 7, ...email("a@x.example") },
      fault("email", `is that of the user 5 "Ada" (external_id u-5): ${MEAN_IT}`),
    ],
    [
      "with a new external id for a unique value",
      { externalId: "u-7", ...email("a@x.example") },
      fault("email", `is that of the user 5 "Ada" (external_id u-5): ${MEAN_IT}`),
    ],
  ])("%s", (_, line, outcome) => {
    expect(new Directory("user", [KNOWN, BARE]).settle(line, () => undefined)).toEqual(outcome);
  });

  test("with the id of a record of another kind is told that both kinds share their ids", () => {
    const directory = new Directory("account", [{ id: 5, noun: "partner", name: "P", origin: "" }]);
    expect(directory.settle({ id: 5, externalId: "a-5", origin: "1" }, () => undefined)).toEqual(
      fault(
        "id",
        `is that of the partner 5 "P": partners and accounts share their ids; ${OTHER_ID}`,
      ),
    );
  });

  test("means the record of an earlier line", () => {
    const directory = new Directory("user", []);
    const line = { externalId: "x", origin: "1" };
    expect(directory.settle(line, () => undefined)).toBe("created");
    expect(directory.settle(line, () => undefined)).toBe("present");
  });

  test("that is refused makes no record", () => {
    const directory = new Directory("user", []);
    const line = { externalId: "x", origin: "1" };
    const refusal = fault("name", "is wrong");
    expect(directory.settle(line, () => refusal)).toBe(refusal);
    expect(directory.settle(line, () => undefined)).toBe("created");
  });
});
