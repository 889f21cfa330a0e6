import { expect, test } from "bun:test";

import { isSendable } from "../../../../dispatcher/actor/entry.ts";
import { entry } from "../../../support/actor.ts";

test("an entry is sendable unless the row of the history that it names is missing", () => {
  expect(isSendable(entry(1))).toBe(true);
  expect(isSendable(entry(1, { source: { kind: "missing" } }))).toBe(false);
});
