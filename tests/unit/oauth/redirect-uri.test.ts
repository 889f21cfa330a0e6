import { expect, test } from "bun:test";

import { matchesRedirect, placeOf, withParams } from "../../../src/oauth/redirect-uri.ts";

test.each([
  ["https://app.example/cb?x=1", "https://app.example"],
  ["http://[::1]:4000/cb", "http://[::1]:4000"],
  ["com.example.app:/cb", "com.example.app:"],
])("the place of %s is %s", (uri, place) => {
  expect(placeOf(uri)).toBe(place);
});

test.each([
  ["https://app.example/cb", "https://app.example/cb?code=a%26b&iss=x"],
  ["https://app.example/cb?y=%20", "https://app.example/cb?y=%20&code=a%26b&iss=x"],
  ["com.example.app:/cb", "com.example.app:/cb?code=a%26b&iss=x"],
])("an answer is added to %s and leaves it as it is", (uri, location) => {
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
  ["https://app.example/cb", "https://app.example:4000/cb", false],
])("registered as %s, %s matches: %p", (registered, given, isMatch) => {
  expect(matchesRedirect(registered, given)).toBe(isMatch);
});
