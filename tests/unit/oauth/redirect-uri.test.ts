import { expect, test } from "bun:test";

import { placeOf, withParams } from "../../../src/oauth/redirect-uri.ts";

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
