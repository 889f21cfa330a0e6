import { describe, expect, test } from "bun:test";

import { headersError, movedHeadersError } from "../../../src/webhooks/header-rules.ts";

describe("headers of one's own", () => {
  const NAME_64 = "a".repeat(64);
  const VALUE_1024 = "v".repeat(1_024);
  const count = (n: number) =>
    Object.fromEntries(Array.from({ length: n }, (_, i) => [`X-${i}`, "v"]));
  // Three names of 2 bytes with the longest values leave 1,018 bytes: a name of 2 and a value of 1,016.
  const bytes = (last: number) => ({
    "X-": VALUE_1024,
    "Y-": VALUE_1024,
    "Z-": VALUE_1024,
    "W-": "v".repeat(last),
  });

  test.each<[string, unknown]>([
    ["absence", undefined],
    ["null", null],
    ["no header", {}],
    ["ten headers", count(10)],
    ["a name of 64 characters", { [NAME_64]: "v" }],
    ["a name of every kind of token character", { "!#$%&'*+-.^_`|~09AZaz": "v" }],
    ["names that a prototype has", JSON.parse('{"__proto__": "v", "constructor": "w"}')],
    ["names that only resemble reserved ones", { "X-SVCS": "v", Webhook: "v", Hosts: "v" }],
    ["Authorization", { Authorization: "Basic dXNlcjpwYXNz" }],
    ["a value of one character", { X: "!" }],
    ["a value of 1,024 characters", { X: VALUE_1024 }],
    ["spaces and tabs inside a value", { X: "a \t b" }],
    ["the first and the last visible character", { X: "!~" }],
    ["4,096 bytes in all", bytes(1_016)],
  ])("%s is accepted", (_, headers) => {
    expect(headersError(headers)).toBeUndefined();
  });

  test.each<[string, unknown, string]>([
    ["a list", ["X-A", "b"], "must be null, or an object"],
    ["a text", "X-A: b", "must be null, or an object"],
    ["eleven headers", count(11), "must have at most 10 headers"],
    ["an empty name", { X: "v", "": "v" }, "invalid name at index 1"],
    ["a name of 65 characters", { [`${NAME_64}a`]: "v" }, "invalid name at index 0"],
    ["a number as a name", { 1: "v" }, "invalid name at index 0"],
    ...[" ", ":", "\r", "\n", "\0", "(", "/", "@", "é", "\u007f", "\u2028"].map(
      (char): [string, unknown, string] => [
        `${JSON.stringify(char)} in a name`,
        { [`X${char}A`]: "v" },
        "invalid name at index 0",
      ],
    ),
    ["a name twice", { "X-Key": "v", "x-kEy": "w" }, "has x-kEy twice"],
    ["an empty value", { X: "" }, "invalid value of X"],
    ["a value of 1,025 characters", { X: `${VALUE_1024}v` }, "invalid value of X"],
    ["a number as a value", { X: 1 }, "invalid value of X"],
    ["null as a value", { X: null }, "invalid value of X"],
    ...[
      " v",
      "v ",
      "\tv",
      "v\t",
      "a\r\nX-SVC-Test: 1",
      "a\rb",
      "a\nb",
      "a\0b",
      "é",
      "\u007f",
      "\u0100",
    ].map((value): [string, unknown, string] => [
      `the value ${JSON.stringify(value)}`,
      { X: value },
      "invalid value of X",
    ]),
    ["4,097 bytes in all", bytes(1_017), "at most 4096 bytes"],
  ])("%s is refused", (_, headers, message) => {
    expect(headersError(headers)).toContain(message);
  });

  test.each([
    ..."Connection Proxy-Connection Keep-Alive TE Transfer-Encoding Upgrade".split(" "),
    ..."Trailer Proxy-Authorization Proxy-Authenticate Proxy-X".split(" "),
    ..."Host Cookie Expect User-Agent Content-Length Content-Type Content-X".split(" "),
    ..."X-SVC-Signature X-SVC-New webhook-id webhook-signature webhook-new".split(" "),
    ..."X_SVC_Signature X_Svc-Event webhook_id Content_Length Transfer_Encoding Keep_Alive".split(
      " ",
    ),
  ])("%s is reserved, in any case", (name) => {
    for (const one of [name, name.toLowerCase(), name.toUpperCase()])
      expect(headersError({ [one]: "v" })).toBe(`must not have ${one}, which is reserved`);
  });

  const URL = "https://partner.example/";
  const OTHER = "https://other.example/";
  test.each<[string, string[], object, boolean]>([
    ["another URL without headers", ["X"], { webhook_url: OTHER }, true],
    ["another URL with headers", ["X"], { webhook_url: OTHER, headers: { X: "v" } }, false],
    ["another URL, and none", ["X"], { webhook_url: OTHER, headers: null }, false],
    ["another URL where there are none", [], { webhook_url: OTHER }, false],
    ["the same URL", ["X"], { webhook_url: URL }, false],
    ["no URL", ["X"], { label: "L" }, false],
    ["a malformed URL", ["X"], { webhook_url: 1 }, false],
  ])(
    "have to come with %s, if they do not stay where they were",
    (_, headerNames, body, isRefused) => {
      const error = movedHeadersError({ webhookUrl: URL, headerNames }, { ...body });
      expect(error !== undefined).toBe(isRefused);
    },
  );

  test("of which one is wrong are refused without a value in the message", () => {
    for (const headers of [
      { X: "hush-hush\n" },
      { Host: "hush-hush" },
      { "": "hush-hush" },
      { X: "hush-hush", x: "hush-hush" },
    ])
      expect(headersError(headers)).not.toContain("hush-hush");
  });
});
