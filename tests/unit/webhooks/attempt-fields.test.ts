import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { deliveryAttempts } from "../../../db/schema/attempts.ts";
import type { Attempt, AttemptObject } from "../../../src/webhooks/delivery-model.ts";
import { SUMMARY } from "../../../src/webhooks/queries/attempts.ts";

/*
 * A new column of `delivery_attempts` does not compile here until its author has decided whether the API shows it, and
 * a new field of an attempt until its author has decided who sees it.
 */

test("contract 6.13 lists the fields of an attempt in their order", () => {
  const [, list = ""] =
    /^Attempt: `([^`]+)`/m.exec(textOf("docs/contract/6-subscriptions.md")) ?? [];
  const names = list.replaceAll(/\([^)]*\)/g, "").split(/[\s,]+/);
  expect(names).toEqual(Object.keys(READERS));
});

test("no list reads the columns that the API does not show", () => {
  for (const column of Object.keys(INTERNAL)) expect(SUMMARY).not.toHaveProperty(column);
});

const ROOT = join(import.meta.dir, "../../..");
const FILES = {
  dashboard: "src/dashboard/app/pages/webhooks/**/*.{ts,tsx}",
  command: "src/cli/delivery-commands.ts",
};
type Reader = keyof typeof FILES;

const NOBODY: readonly Reader[] = [];
const DASHBOARD: readonly Reader[] = ["dashboard"];
const BOTH: readonly Reader[] = ["dashboard", "command"];

/** Readers of each field, besides programs, which get all of them. */
const READERS: Readonly<Record<keyof (typeof AttemptObject)["properties"], readonly Reader[]>> = {
  id: NOBODY,
  event_id: BOTH,
  event: BOTH,
  attempt: BOTH,
  round: DASHBOARD,
  sequence: DASHBOARD,
  started_at: BOTH,
  duration_ms: BOTH,
  outcome: BOTH,
  status_code: BOTH,
  error_code: BOTH,
  tls_reason: BOTH,
  request_headers: DASHBOARD,
  request_body: BOTH,
  request_digest: DASHBOARD,
  request_erased: DASHBOARD,
  response_headers: DASHBOARD,
  response_excerpt: DASHBOARD,
  response_truncated: DASHBOARD,
  next_attempt_at: DASHBOARD,
  possibly_repeated: DASHBOARD,
  resent: DASHBOARD,
};

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
};

test.each(Object.entries(READERS))("the field %s of an attempt is read by %j", (field, readers) => {
  const texts = { dashboard: textOf(FILES.dashboard), command: textOf(FILES.command) };
  const found = BOTH.filter((reader) => new RegExp(`\\b${field}\\b`).test(texts[reader]));
  for (const reader of readers) expect(found).toContain(reader);
});

test("each field has a test besides the list of fields", () => {
  const tests = textOf("tests/integration/**/*.test.ts", "webhooks/deliveries.test.ts");
  const untested = Object.keys(READERS).filter(
    (field) => !new RegExp(`\\b${field}\\b`).test(tests),
  );
  expect(untested).toEqual([]);
});

function textOf(files: string, besides = "\0"): string {
  const all = [...new Bun.Glob(files).scanSync({ cwd: ROOT, absolute: true })];
  const paths = all.filter((path) => !path.endsWith(besides));
  return paths.map((path) => readFileSync(path, "utf8")).join("\n");
}
