import { expect, test } from "bun:test";

import { factsOf } from "../../../../dispatcher/delivery/compose.ts";
import { composeBody } from "../../../../src/outbox/payload-format.ts";
import { entry } from "../../../support/actor.ts";

test("an entry is sendable unless the row of the history that it names is missing", () => {
  expect(factsOf(entry(1), 7)).toBeDefined();
  expect(factsOf(entry(1, { isTest: true, facts: undefined }), 7)).toBeDefined();
  expect(factsOf(entry(1, { facts: undefined }), 7)).toBeUndefined();
});

test.each(["full", "minimal"] as const)(
  "a test composes exactly the bytes of tests/golden/test-%s.json",
  async (mode) => {
    const probe = entry(1, {
      event: "webhook.test",
      eventId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
      isTest: true,
      recordedAt: new Date("2026-06-01T12:00:00.000Z"),
      facts: undefined,
    });
    const facts = factsOf(probe, 7);
    if (facts === undefined) throw new Error("The entry has no facts.");
    const golden = Bun.file(`${import.meta.dir}/../../../golden/test-${mode}.json`);
    expect(composeBody(facts, mode, new Date("2026-06-01T12:00:01.250Z"))).toBe(
      await golden.text(),
    );
  },
);
