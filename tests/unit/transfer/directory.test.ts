import { describe, expect, test } from "bun:test";

import { Directory, fault, type Identity } from "../../../src/transfer/directory.ts";

const email = (value: string) => ({ unique: { field: "email", value }, origin: "1" });
const KNOWN: Identity = { id: 5, externalId: "u-5", ...email("a@x.example") };
const BARE: Identity = { id: 6, externalId: null, ...email("b@x.example") };

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
      fault("external_id", "is required of a record without an id"),
    ],
    [
      "with the id of another external id",
      { id: 5, externalId: "u-6", origin: "1" },
      fault("id", "is the id of another record"),
    ],
    [
      "with an external id for a record without one",
      { id: 6, externalId: "u-6", origin: "1" },
      fault("id", "is the id of another record"),
    ],
    [
      "with the id of another origin",
      { id: 6, origin: "2" },
      fault("id", "is the id of another record"),
    ],
    [
      "with a new id for an external id",
      { id: 7, externalId: "u-5", origin: "1" },
      fault("external_id", "is that of the record 5"),
    ],
    [
      "with a new id for a unique value",
      { id: 7, ...email("a@x.example") },
      fault("email", "is that of the record 5"),
    ],
    [
      "with a new external id for a unique value",
      { externalId: "u-7", ...email("a@x.example") },
      fault("email", "is that of the record 5"),
    ],
  ])("%s", (_, line, outcome) => {
    expect(new Directory([KNOWN, BARE]).settle(line, () => undefined)).toEqual(outcome);
  });

  test("means the record of an earlier line", () => {
    const directory = new Directory([]);
    const line = { externalId: "x", origin: "1" };
    expect(directory.settle(line, () => undefined)).toBe("created");
    expect(directory.settle(line, () => undefined)).toBe("present");
  });

  test("that is refused makes no record", () => {
    const directory = new Directory([]);
    const line = { externalId: "x", origin: "1" };
    const refusal = fault("name", "is wrong");
    expect(directory.settle(line, () => refusal)).toBe(refusal);
    expect(directory.settle(line, () => undefined)).toBe("created");
  });
});
