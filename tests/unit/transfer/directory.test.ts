import { describe, expect, test } from "bun:test";

import { Directory, fault, type Identity } from "../../../src/transfer/directory.ts";

describe("a line", () => {
  test.each([
    ["with a free id", { id: 7, ...email("c@x.example") }, "created"],
    ["with a free external id", { externalId: "u-7", ...email("c@x.example") }, "created"],
    ["with a free unique value", email("c@x.example"), "created"],
    ["with id and external id of a record", { id: 5, externalId: "u-5", origin: "9" }, "present"],
    ["with the id and the origin of a record", { id: 6, origin: "1" }, "present"],
    ["with the external id of a record", { externalId: "u-5", origin: "9" }, "present"],
    ["with the unique value of a record", EMAIL, "present"],
  ])("%s", (_, line, outcome) => {
    expect<unknown>(settled(line)).toBe(outcome);
  });

  test.each([
    [
      "without any identity",
      { origin: "1" },
      "external_id",
      "is required for a record without an id",
    ],
    ["with the id of another external id", { id: 5, ...U6 }, "id", `${IS_ADA}: ${OTHER_ID}`],
    ["with an external id for a bare record", { id: 6, ...U6 }, "id", `${IS_BARE}: ${OTHER_ID}`],
    ["with the id of another origin", { id: 6, origin: "2" }, "id", `${IS_BARE}: ${OMIT_ID}`],
    ["with a new id for an external id", { id: 7, ...U5 }, "external_id", `${IS_ADA}: ${SEND_ID}`],
    ["with a new id for a known email", { id: 7, ...EMAIL }, "email", `${IS_ADA}: ${MEAN_IT}`],
    [
      "with a new external id for a known email",
      { ...U6, ...EMAIL },
      "email",
      `${IS_ADA}: ${MEAN_IT}`,
    ],
  ])("%s is refused", (_, line, field, reason) => {
    expect(settled(line)).toEqual(fault(field, reason));
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

const email = (value: string) => ({ unique: { field: "email", value }, origin: "1" });
const EMAIL = email("a@x.example");
const KNOWN: Identity = { id: 5, name: "Ada", externalId: "u-5", ...EMAIL };
const BARE: Identity = { id: 6, externalId: null, ...email("b@x.example") };
const U5 = { externalId: "u-5", origin: "1" };
const U6 = { externalId: "u-6", origin: "1" };

const IS_ADA = 'is that of the user 5 "Ada" (external_id u-5)';
const IS_BARE = "is that of the user 6";
const OMIT_ID = "omit id for a new record";
const OTHER_ID = `${OMIT_ID}, and refer to it by external_id`;
const SEND_ID = "send its id, or omit id";
const MEAN_IT = "omit id and external_id to refer to it; the value must be unique";

const settled = (line: Identity) =>
  new Directory("user", [KNOWN, BARE]).settle(line, () => undefined);
