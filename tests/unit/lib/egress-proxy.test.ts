import { describe, expect, test } from "bun:test";

import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";

describe("parseProxyUrl", () => {
  test("reads host and port, with 80 where none is written", () => {
    for (const [url, host, port] of [
      ["http://proxy.example:3128", "proxy.example", 3128],
      ["http://10.0.0.1:8080/", "10.0.0.1", 8080],
      ["http://[fd00::1]:3128", "fd00::1", 3128],
      ["HTTP://proxy.example", "proxy.example", 80],
    ] as const)
      expect(parseProxyUrl(url)).toEqual({ host, port, authorization: undefined });
  });

  test("reads user and password, percent-encoded or not, either of them empty", () => {
    for (const [part, credentials] of [
      ["relay:secret", "relay:secret"],
      ["relay", "relay:"],
      [":secret", ":secret"],
      ["r%40b:a%3Ab%2F", "r@b:a:b/"],
      ["zo%C3%AB:ü", "zoë:ü"],
    ] as const)
      expect(parseProxyUrl(`http://${part}@proxy.example`).authorization).toBe(
        `Basic ${Buffer.from(credentials).toString("base64")}`,
      );
  });

  test.each([
    "secret",
    "proxy.example:3128",
    "https://u:secret@proxy.example",
    "socks5://u:secret@proxy.example",
    "http://u:secret@proxy.example:0",
    "http://u:secret@proxy.example:99999",
    "http://u:secret@proxy.example/path",
    "http://u:secret@proxy.example/?q",
    "http://u:secret@proxy.example/#f",
    "http://u:secret/@proxy.example",
    "http://u%3Av:secret@proxy.example",
    "http://u:secret%FF@proxy.example",
    "http://u:secret%0D%0A@proxy.example",
  ])("rejects %s without repeating it in the error", (url) => {
    expect(() => parseProxyUrl(url)).toThrow(/^must (?!.*secret)/);
  });
});
