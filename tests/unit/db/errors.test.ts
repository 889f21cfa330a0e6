import { expect, test } from "bun:test";

import { afterCommitSent, isOutcomeUnknown } from "../../../db/errors.ts";

test.each([
  ["a deferred constraint", { severity: "ERROR", code: "23505" }, false],
  ["a conflict of transactions", { severity: "ERROR", code: "40001" }, false],
  ["a lock time-out", { severity: "ERROR", code: "55P03" }, false],
  ["a session that the server ended", { severity: "FATAL", code: "57P01" }, true],
  ["a pooler that lost the server", { severity: "ERROR", code: "08006" }, true],
  ["a connection that ended", { code: "CONNECTION_CLOSED" }, true],
  ["an overdue answer", { code: "DEADLINE_EXCEEDED" }, true],
])("after a commit was sent, %s hides its outcome: %p: %p", (_, fields, isUnknown) => {
  const error = afterCommitSent(Object.assign(new Error("failed"), fields));
  expect(isOutcomeUnknown(error)).toBe(isUnknown);
});
