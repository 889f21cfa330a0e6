import { describe, expect, test } from "bun:test";

import { isMailAddress } from "../../../src/lib/email.ts";

describe("a recipient is one plain address", () => {
  const good = [
    "ada@reviews.example",
    "a.b+c@x",
    "zoë@bücher.example",
    "a@ＥＸＡＭＰＬＥ。test",
    `${"a".repeat(64)}@x.example`,
  ];
  for (const address of good)
    test(`${JSON.stringify(address)} is one`, () => expect(isMailAddress(address)).toBe(true));

  const bad = [
    "",
    "ada",
    "@x",
    "ada@",
    "a@b@c",
    "ada@x\r\nBcc: eve@x",
    "ada@x\nRCPT TO:<eve@x>",
    "ada\r@x",
    "ada@x\u0000",
    "ada@x\u2028eve",
    "ada@x, eve@x",
    "ada@x;eve@x",
    "Ada <ada@x>",
    "<ada@x>",
    '"ada eve"@x',
    "ada@[127.0.0.1]",
    " ada@x",
    "\ud800@x",
    `${"a".repeat(250)}@x.de`,
    `${"é".repeat(124)}@x.test`,
    `a@${"é".repeat(70)}.test`,
    "a\u200b@x",
    "\u3164@x",
    "a\ufe0f@x",
    "a\u2800@x",
    "a(b@x",
    "a@b.",
    "a@b..c",
    "a@-b.c",
    "a@b_c.test",
    "a@ex%41mple.test",
    "a@b.test/c",
    "a@127.0.0.1",
    "a@0x7f000001",
    "a@xn--a",
    "a@b\u00ad.test",
  ];
  for (const address of bad)
    test(`${JSON.stringify(address).slice(0, 40)} is none`, () =>
      expect(isMailAddress(address)).toBe(false));
});
