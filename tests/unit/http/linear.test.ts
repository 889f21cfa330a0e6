import { describe, expect, test } from "bun:test";

import { Type } from "@sinclair/typebox";

import { loginBody } from "../../../src/auth/model.ts";
import { readRequestContext } from "../../../src/http/request-context.ts";
import { examine, examineQuery, readQuery } from "../../../src/http/fields.ts";
import { parseJson } from "../../../src/http/body.ts";
import { MAX_PARAMETERS, queryOf, readParameters } from "../../../src/http/text.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { readCredentials } from "../../../src/oauth/credentials.ts";
import { Params, readForm } from "../../../src/oauth/form.ts";
import { authorizeCookie } from "../../../src/oauth/ticket.ts";
import { expectLinear } from "../../support/growth.ts";

describe("a form", () => {
  const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });

  test.each(Object.entries(FORMS))("of %s is read in linear time", (_, make) => {
    expectLinear(
      (bytes) => Buffer.from(make(bytes)),
      (raw: Uint8Array) => {
        const form = readForm(headers, raw);
        form.refuseRepeated();
        return form.one("ticket");
      },
    );
  });

  test("may have 64 parameters and no more, even empty ones", () => {
    for (const piece of ["a=1", "", "a", "="]) {
      const form = (count: number) => Array.from({ length: count }, () => piece).join("&");
      expect(readParameters(form(MAX_PARAMETERS))).toBeDefined();
      expect(readParameters(form(MAX_PARAMETERS + 1))).toBeUndefined();
    }
    expect(() => new Params("&".repeat(MAX_PARAMETERS))).toThrow("more than 64 parameters");
  });

  test("keeps every value of a name, in order", () => {
    expect([...(readParameters("a=1&b=%20x&a=&c&a=+") ?? [])]).toEqual([
      ["a", ["1", "", " "]],
      ["b", [" x"]],
      ["c", [""]],
    ]);
  });
});

describe("a query", () => {
  const schema = Type.Object({
    a: Type.Optional(Type.String()),
    since: Type.Optional(Type.String({ format: "date-time" })),
    limit: Type.Optional(Type.Integer()),
  });
  const read = (query: string) => examineQuery(schema, readQuery(schema, query));

  test.each(Object.entries(FORMS))("of %s is read in linear time", (_, make) => {
    expectLinear(
      (bytes) => `http://localhost/?${make(bytes)}`,
      (url: string) => read(queryOf({ url })),
    );
    expectLinear(
      (bytes) => `since=${make(bytes).replaceAll("&", ";")}&limit=${"1".repeat(bytes / 2)}`,
      read,
    );
  });

  test("of 64 parameters is accepted, and one more is an error", () => {
    expect(read("x&".repeat(MAX_PARAMETERS - 1))).toEqual({ value: {} });
    expect(() => read("x&".repeat(MAX_PARAMETERS))).toThrow("invalid fields");
  });

  test.each([
    ["http://localhost/a", ""],
    ["http://localhost/a?", ""],
    ["http://localhost/a?b=1", "b=1"],
    ["http://localhost/a?b=?&c", "b=?&c"],
    ["http://localhost/a?b#c?d", "b"],
    ["http://localhost/a#?b", ""],
    ["/a?b", "b"],
    ["a:443", ""],
  ])("of %s is %p", (url, query) => {
    expect(queryOf({ url })).toBe(query);
  });
});

describe("a body", () => {
  const closed = Type.Object({ email: Type.String() }, { additionalProperties: false });
  const lists = Type.Object({ a: Type.Array(Type.Object({ b: Type.String() })) });

  test.each(Object.entries(BODIES))("of %s is read in linear time", (_, make) => {
    const asBytes = (bytes: number) => Buffer.from(make(bytes));
    expectLinear(asBytes, (raw: Uint8Array) => parseJson(raw, LIMIT));
    for (const schema of [loginBody, closed, lists])
      // The limit is four times wider here, so that the code behind it is tested by itself.
      expectLinear(asBytes, (raw: Uint8Array) => examine(schema, parseJson(raw, 4 * LIMIT)));
  });

  test("drops invalid fields, however deep an unknown field is", () => {
    const deep = JSON.parse(`${"[".repeat(60_000)}${"]".repeat(60_000)}`);
    const login = examine(loginBody, { email: 1, password: "x", deep });
    expect("fieldErrors" in login && Object.keys(login.fieldErrors)).toEqual(["email"]);
    expect("sound" in login && fieldsOf(login.sound)["deep"]).toBe(deep);
    const unknown = examine(closed, { email: "a", deep });
    expect("sound" in unknown && unknown.sound).toEqual({ email: "a", deep: undefined } as never);
  });
});

describe("a header", () => {
  const cookie = authorizeCookie({ serverRoot: "http://localhost" });
  const isProxy = (address: string) => address.startsWith("10.");

  test.each(Object.entries(HEADERS))("of %s is read in linear time", (_, make) => {
    expectLinear(
      (bytes) =>
        new Headers({
          cookie: make(bytes),
          "x-forwarded-for": make(bytes),
          "user-agent": make(bytes),
        }),
      (headers: Headers) => [
        cookie.read(headers),
        readRequestContext(headers, "10.0.0.1", isProxy),
      ],
    );
    expectLinear(
      (bytes) => new Headers({ authorization: make(bytes) }),
      (headers: Headers) => readCredentials(headers, new Params("")),
    );
  });
});

/*
 * Parsers of untrusted bytes work in linear time. Each parser gets the worst input of its grammar. The limits would
 * end most of these early, so the code behind a limit is also tested with inputs that stay within it.
 */
const repeat = (piece: string) => (bytes: number) =>
  piece.repeat(Math.ceil(bytes / piece.length)).slice(0, bytes);

const distinct = (piece: (i: number) => string, joint: string) => (bytes: number) => {
  const pieces: string[] = [];
  for (let size = 0; size < bytes;) {
    const one = piece(pieces.length);
    pieces.push(one);
    size += one.length + joint.length;
  }
  return pieces.join(joint);
};

const inQuotes = (make: (bytes: number) => string) => (bytes: number) =>
  JSON.stringify(make(bytes));

const FORMS: Record<string, (bytes: number) => string> = {
  "distinct names": distinct((i) => `a${i}=`, "&"),
  "one name again and again": repeat("a=1&"),
  "separators alone": repeat("&"),
  "escapes in a row": repeat("%61"),
  "escapes apart": repeat("%61a"),
  "broken escapes": repeat("%zz%"),
  "broken UTF-8 behind escapes": repeat("%ff"),
  "equals signs": repeat("="),
  "plus signs": repeat("+"),
  "as many names as there may be": (bytes) =>
    Array.from({ length: MAX_PARAMETERS }, (_, i) => `a${i}=${"x".repeat(bytes / 64 - 5)}`).join(
      "&",
    ),
};

const BODIES: Record<string, (bytes: number) => string> = {
  "lists in lists": repeat("["),
  "objects in objects": repeat('{"a":'),
  "lists in an unknown field": (bytes) => `{"a":${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}}`,
  "empty lists": (bytes) => `[${distinct(() => "[]", ",")(bytes)}]`,
  "unknown fields": (bytes) => `{${distinct((i) => `"a${i}":1`, ",")(bytes)}}`,
  "one field again and again": (bytes) => `{${distinct(() => '"a":1', ",")(bytes)}}`,
  "fields that are numbers": (bytes) =>
    `{${distinct((i) => `"${4_294_967_295 - i}":1`, ",")(bytes)}}`,
  backslashes: inQuotes(repeat("\\")),
  "quotes behind backslashes": inQuotes(repeat('"')),
  "a text without an end": (bytes) => `"${repeat("\\\\")(bytes)}`,
  "a long name": (bytes) => `{"${repeat("a/~")(bytes)}":1}`,
  "a long number": repeat("1"),
  blanks: repeat(" "),
  "a login with a long email": (bytes) =>
    JSON.stringify({ email: " ".repeat(bytes), password: "x" }),
  "a login with a long password": (bytes) =>
    JSON.stringify({ email: "a", password: "😀".repeat(bytes / 4) }),
  "a login with a password of broken halves": (bytes) =>
    JSON.stringify({ email: "a", password: "\ud83d".repeat(bytes / 6) }),
};

const HEADERS: Record<string, (bytes: number) => string> = {
  blanks: repeat(" "),
  commas: repeat(","),
  addresses: repeat("10.0.0.1,"),
  semicolons: repeat("; "),
  dots: repeat("a."),
  "equals signs": repeat("="),
  "the beginning of a scheme": (bytes) => `basic ${" ".repeat(bytes)}`,
  "a long basic": (bytes) => `basic ${Buffer.from("a:%".repeat(bytes / 4)).toString("base64")}`,
};

const LIMIT = 64 * 1024;
