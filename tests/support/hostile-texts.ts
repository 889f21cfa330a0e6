/** Addresses of which no path may make a user, a recipient or a reviewer. */
export const HOSTILE_EMAILS = [
  "a(b@corp.test",
  "a\r\nBcc: eve@corp.test",
  "a@x.test,b@corp.test",
  "a@x.test;b@corp.test",
  "Ada <ada@corp.test>",
  '"a b"@corp.test',
  "a\u200b@corp.test",
  "a\u202e@corp.test",
  "\u3164@corp.test",
  "a@corp.test\u2028b",
  "a@ex%41mple@corp.test",
  // NFC makes a semicolon of the first and no angle bracket of the second.
  "a\u037eb@corp.test",
  "a<\u0338b@corp.test",
  "a@-corp.test",
  "a@xn--a.test",
  `a@${"corp.test.".repeat(26)}test`,
  "a@corp..test",
  `${"é".repeat(124)}@corp.test`,
  `${"a".repeat(5_000)}@corp.test`,
];

/** Names that no path may give to a person or a thing. */
export const HOSTILE_NAMES = [
  "Ada\u202eevil",
  "Ada\u2028evil",
  "Ada\u200fevil",
  "Ada\u2066evil",
  "\u200b",
  "\u2060\u00ad",
  "\u3164",
  "\u2800",
  "\u180e\ufe0f",
  "\u{e0041}",
  "x".repeat(201),
];
