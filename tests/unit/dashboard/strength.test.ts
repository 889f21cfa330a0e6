import { expect, test } from "bun:test";

import { strengthOf } from "../../../src/dashboard/app/ui/password-strength.ts";

test.each([
  ["", 0, "Too short"],
  ["Ab1!xyz", 0, "Too short"],
  ["aaaaaaaa", 1, "Easy to guess"],
  ["abcdefghijklmnopqrstuvwxyz", 1, "Easy to guess"],
  ["password", 1, "Easy to guess"],
  ["hunterab1", 2, "Fair"],
  ["Tr0ub4dor&3", 3, "Good"],
  ["correct horse battery staple", 4, "Strong"],
  ["ÄÖÜ東京タワーへ行きました", 4, "Strong"],
] as const)("%p has strength %d: %p", (password, level, word) => {
  expect(strengthOf(password)).toMatchObject({ level, word });
});
