import { describe, expect, test } from "bun:test";

import { proxyTest, readRequestContext } from "../../../src/http/request-context.ts";

describe("the caller's address", () => {
  const proxies = ["10.0.0.0/8", "::1"];

  test.each([
    ["is the peer's", { peer: "203.0.113.9" }, "203.0.113.9"],
    [
      "is the peer's, whatever an untrusted peer claims",
      { forwarded: "1.2.3.4", peer: "203.0.113.9" },
      "203.0.113.9",
    ],
    [
      "is the one that a trusted proxy reports",
      { forwarded: "1.2.3.4", peer: "10.0.0.1" },
      "1.2.3.4",
    ],
    [
      "is the last one that no trusted proxy reported",
      { forwarded: "6.6.6.6, 1.2.3.4, 10.0.0.2", peer: "10.0.0.1" },
      "1.2.3.4",
    ],
    [
      "is the last hop before an invalid address",
      { forwarded: "unknown, 10.0.0.2", peer: "10.0.0.1" },
      "10.0.0.2",
    ],
    ["may be IPv6", { forwarded: "2001:db8::1", peer: "::1" }, "2001:db8::1"],
    ["is without its port", { forwarded: "1.2.3.4:5678", peer: "::1" }, "1.2.3.4"],
    [
      "is without port and brackets",
      { forwarded: "[2001:db8::1]:443", peer: "::1" },
      "2001:db8::1",
    ],
    ["is without brackets", { forwarded: "[2001:db8::1]", peer: "::1" }, "2001:db8::1"],
    [
      "is found behind a trusted proxy that is named with its port",
      { forwarded: "1.2.3.4:5678, 10.0.0.2:80", peer: "10.0.0.1" },
      "1.2.3.4",
    ],
    [
      "is the last hop before an address with two ports",
      { forwarded: "1.2.3.4:56:78, 10.0.0.2", peer: "10.0.0.1" },
      "10.0.0.2",
    ],
  ])("%s", (_, sent, expected) => {
    expect(ipOf(sent, proxies)).toBe(expected);
  });

  test("is not taken from a header without trusted proxies", () => {
    expect(ipOf({ forwarded: "1.2.3.4", peer: "10.0.0.1" }, [])).toBe("10.0.0.1");
  });
});

test("a user agent is kept up to 256 characters", () => {
  const requestContext = readRequestContext(
    new Headers({ "User-Agent": "u".repeat(300) }),
    "::1",
    () => false,
  );
  expect(requestContext.userAgent).toBe("u".repeat(256));
  expect(readRequestContext(new Headers(), "::1", () => false).userAgent).toBeNull();
});

function ipOf(sent: { forwarded?: string; peer: string }, proxies: readonly string[]): string {
  const headers = new Headers(sent.forwarded ? { "X-Forwarded-For": sent.forwarded } : {});
  return readRequestContext(headers, sent.peer, proxyTest(proxies)).ip;
}
