import { expect, test } from "bun:test";

import { deviceOf } from "../../../src/lib/device.ts";

const CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";

test.each([
  [`Mozilla/5.0 (X11; Linux x86_64) ${CHROME}`, "Chrome on Linux"],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Edg/130.0`, "Edge on Windows"],
  [
    `Mozilla/5.0 (Linux; Android 14; Pixel 8) ${CHROME.replace("Safari", "Mobile Safari")}`,
    "Chrome on Android",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari on iOS",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14.0; rv:130.0) Gecko/20100101 Firefox/130.0",
    "Firefox on macOS",
  ],
  ["curl/8.5.0", "curl/8.5.0"],
  ["our-integration/2 (+https://partner.example)", "our-integration/2"],
  ["", "Unknown device"],
  [null, "Unknown device"],
])("%p is %p", (userAgent, device) => {
  expect(deviceOf(userAgent)).toBe(device);
});

test("a very long name is cut", () => {
  expect(deviceOf("x".repeat(500))).toHaveLength(40);
});
