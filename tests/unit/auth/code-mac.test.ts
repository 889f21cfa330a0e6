import { describe, expect, test } from "bun:test";

import { createCodeMac } from "../../../src/auth/passwords/codes.ts";

describe("the MAC of a code", () => {
  test("matches its code in its context, and nothing else", () => {
    const made = mac.sign("012345", "signup:a");
    expect(mac.matches(made, "012345", "signup:a")).toBe(true);
    expect(mac.matches(made, "12345", "signup:a")).toBe(false);
    expect(mac.matches(made, "012345", "signup:b")).toBe(false);
    expect(mac.matches(made, "", "signup:a\u0000012345")).toBe(false);
    expect(mac.matches("", "012345", "signup:a")).toBe(false);
  });

  test("matches under the previous master key, but not under an unknown one", () => {
    const made = mac.sign("012345", "c");
    const renewed = createCodeMac({ masterKey: key(2), masterKeyPrevious: key(1) });
    expect(renewed.matches(made, "012345", "c")).toBe(true);
    expect(renewed.sign("012345", "c")).not.toBe(made);
    const foreign = createCodeMac({ masterKey: key(2), masterKeyPrevious: undefined });
    expect(foreign.matches(made, "012345", "c")).toBe(false);
  });
});

const key = (fill: number) => new Uint8Array(32).fill(fill);

const mac = createCodeMac({ masterKey: key(1), masterKeyPrevious: undefined });
