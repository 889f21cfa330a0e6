import { expect, test } from "bun:test";

import { strengthOf } from "../../../src/dashboard/app/ui/password-strength.ts";

test.each([
  ["", 0],
  ["Ab1!xyz", 0],
  ["aaaaaaaa", 1],
  ["12345678", 1],
  ["abcdefghijklmnopqrstuvwxyz", 1],
  ["password", 1],
  ["Tr0ub4dor&3", 3],
  ["correct horse battery staple", 4],
  ["ÄÖÜ東京タワーへ行きました", 4],
] as const)("%p has strength %d", (password, level) => {
  expect(strengthOf(password).level).toBe(level);
});

test("every strength has a word", () => {
  const words = ["", "aaaaaaaa", "hunterab1", "Tr0ub4dor&3", "correct horse battery staple"].map(
    (one) => strengthOf(one).word,
  );
  expect(words).toEqual(["Too short", "Easy to guess", "Fair", "Good", "Strong"]);
});
