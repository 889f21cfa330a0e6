import { describe, expect, test } from "bun:test";

import { contextError, isCommonPassword } from "../../../src/auth/passwords/model.ts";

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

describe("the context of a password", () => {
  const names = ["mara.quist@northwind.example", "Mara Lindqvist", "Northwind Agency", null];

  test.each([
    "ReviewRelay1234",
    "northwind2026!",
    "NorthwindAgency",
    "lindqvist-mara7",
    "quist@northwind",
    "reviewrelayabc4567",
  ])("refuses %p", (password) => {
    expect(contextError(password, names)).toStartWith("must have 8 characters besides");
  });

  test.each(["reviewrelayabc45678", "northwind anchor museum", "violet-a", "mar4mar4"])(
    "admits %p, which has 8 characters besides, or no such word",
    (password) => {
      expect(contextError(password, names)).toBeUndefined();
    },
  );
});
