import { describe, expect, test } from "bun:test";

import { isCommonPassword } from "../../../src/auth/password-model.ts";

describe("the list of common passwords", () => {
  test.each(["password", "12345678", "qwertyuiop", "iloveyou", "Password", "PASSWORD1"])(
    "has %p",
    (password) => {
      expect(isCommonPassword(password)).toBe(true);
    },
  );

  test.each(["violet anchor museum 71", " password", "password ", "constructor", "__proto__"])(
    "does not have %p",
    (password) => {
      expect(isCommonPassword(password)).toBe(false);
    },
  );
});
