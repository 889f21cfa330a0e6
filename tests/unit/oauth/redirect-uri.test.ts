import { expect, test } from "bun:test";

import {
  formTargetsOf,
  isHttpsOrigin,
  isRegistrable,
  matchesRedirect,
  destinationOf,
  withParams,
} from "../../../src/oauth/redirect-uri.ts";

test.each([
  ["https://app.example/cb?x=1", "https://app.example"],
  ["http://[::1]:4000/cb", "http://[::1]:4000"],
  ["com.example.app:/cb", "com.example.app:"],
])("the destination shown for %s is %s", (uri, place) => {
  expect(destinationOf(uri)).toBe(place);
});

test.each([
  ["https://app.example/cb", "https://app.example/cb?code=a%26b&iss=x"],
  ["https://app.example/cb?y=%20", "https://app.example/cb?y=%20&code=a%26b&iss=x"],
  ["com.example.app:/cb", "com.example.app:/cb?code=a%26b&iss=x"],
])("parameters are appended to %s and leave the rest unchanged", (uri, location) => {
  expect(withParams(uri, { code: "a&b", state: undefined, iss: "x" })).toBe(location);
});

test.each([
  ["http://127.0.0.1/cb", "http://127.0.0.1:51234/cb", true],
  ["http://[::1]/cb?x=1", "http://[::1]:1/cb?x=1", true],
  ["http://127.0.0.1", "http://127.0.0.1:65535", true],
  ["http://127.0.0.1/cb", "http://127.0.0.1:65536/cb", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1:0/cb", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb", false],
  ["http://127.0.0.1/cb", "http://[::1]:4000/cb", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1:4000/cb/", false],
  ["http://127.0.0.1:4000/cb", "http://127.0.0.1:4001/cb", false],
  ["http://127.0.0.1:4000/cb", "http://127.0.0.1/cb", false],
  ["http://localhost/cb", "http://localhost:4000/cb", false],
  ["http://localhost/cb", "http://localhost/cb", true],
  ["https://app.example/cb", "https://app.example:4000/cb", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1:51234/cb2", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1:51234/cb?x", false],
  ["http://127.0.0.1/cb", "http://127.0.0.2:4000/cb", false],
  ["http://127.0.0.1/cb", "http://127.0.0.1.evil.example:4000/cb", false],
  ["http://127.0.0.1/cb", "https://127.0.0.1:4000/cb", false],
  ["http://127.0.0.1/cb", "http://2130706433:4000/cb", false],
])("the registered URI %s matches the requested %s: %p", (registered, given, isMatch) => {
  expect(matchesRedirect(registered, given)).toBe(isMatch);
});

test.each([
  "https://app.example/callback/",
  "https://app.example/Callback",
  "https://APP.example/callback",
  "https://app.example:443/callback",
  "https://app.example/callback?x=1",
  "https://app.example@evil.example/callback",
  " https://app.example/callback",
])("the registered URI https://app.example/callback does not match %j", (given) => {
  expect(matchesRedirect("https://app.example/callback", given)).toBe(false);
});

test.each([
  ["https://app.example/cb", true],
  ["https://app.example", true],
  ["https://app.example:8443/cb?x=1", true],
  ["http://127.0.0.1/cb", true],
  ["http://localhost:4000/cb", true],
  ["http://[::1]:4000", true],
  ["com.example.app:/cb", true],
  ["com.example.app://cb", true],
  ["http://app.example/cb", false],
  ["http://127.0.0.1.evil.example/cb", false],
  ["https://*.example/cb", false],
  ["https://app.example/*", false],
  ["https://app.example/cb#x", false],
  ["https://user:pw@app.example/cb", false],
  ["https://app.example\\cb", false],
  ["https:app.example", false],
  ["javascript:alert(1)", false],
  ["data:text/html,x", false],
  ["file:///etc/passwd", false],
  ["app:/cb", false],
  ["/cb", false],
  ["https://app.example/a b", false],
  ["https://äpp.example/cb", false],
])("%j may be registered: %p", (uri, isGood) => {
  expect(isRegistrable(uri)).toBe(isGood);
});

test.each([
  ["https://app.example/cb?x=1", "https:"],
  ["https://a;sandbox/cb", "https:"],
  ["http://[::1]:4000/cb", "https: http://[::1]:4000"],
  ["http://localhost/cb", "https: http://localhost"],
  ["com.example.app:/cb;sandbox", "https: com.example.app:"],
])("the form-action sources for %s are %s", (uri, targets) => {
  expect(formTargetsOf(uri)).toBe(targets);
});

test.each(["https://a", "https://a.example:8443", "https://[::1]", "https://a_b.example."])(
  "%s is an origin that may be in a policy and may be registered",
  (origin) => {
    expect([isHttpsOrigin(origin), isRegistrable(`${origin}/cb;x`)]).toEqual([true, true]);
  },
);

test.each([
  "https://a;sandbox",
  "https://a,b",
  "https://a'b'",
  "https://*",
  "https://a b",
  "https://",
  "https://[a",
  "http://a",
  "https://a:123456",
  "https://a/b",
])("%s is not an origin", (origin) => {
  expect(isHttpsOrigin(origin)).toBe(false);
  if (origin !== "https://a/b") expect(isRegistrable(`${origin}/cb`)).toBe(false);
});
