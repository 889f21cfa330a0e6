import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { type Attempt, AttemptObject } from "../../../src/webhooks/delivery-model.ts";
import { SUMMARY } from "../../../src/webhooks/queries/attempts.ts";

// A new column of `delivery_attempts` does not compile here until its author has decided whether the API shows it.

test("contract 6.13 lists the fields of an attempt in their order", () => {
  const page = join(import.meta.dir, "../../../docs/contract/6-subscriptions.md");
  const [, list = ""] = /^Attempt: `([^`]+)`/m.exec(readFileSync(page, "utf8")) ?? [];
  const names = list.replaceAll(/\([^)]*\)/g, "").split(/[\s,]+/);
  expect(names).toEqual(Object.keys(AttemptObject.properties));
});

test("no list reads the columns that the API does not show", () => {
  for (const column of Object.keys(INTERNAL)) expect(SUMMARY).not.toHaveProperty(column);
});

/** Columns that the API does not show, with the reason. */
const INTERNAL: Readonly<
  Record<Exclude<keyof typeof deliveryAttempts.$inferSelect, keyof Attempt>, string>
> = {
  subscriptionId: "is part of the address",
  payloadMode: "is for a redelivery",
  batchJobId: "is for a redelivery",
  recordedAt: "is for a redelivery",
  payloadFormat: "composes the request",
  host: "composes the request",
  signature: "composes the request",
  previousSignature: "composes the request",
  bodyDigest: "proves the request",
  standardSignatures: "composes the request",
  sentNumber: "composes the request",
  sentSettled: "composes the request",
  headerNames: "composes the request",
};
