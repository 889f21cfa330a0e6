import { expect, test } from "bun:test";
import { encodeRequest } from "../../../../dispatcher/http/message.ts";
import { checkWebhookUrl, type WebhookTarget } from "../../../../src/lib/egress.ts";

test("writes head and body as one message, framed by the bytes of the body", () => {
  const expected =
    "POST /in?k=1 HTTP/1.1\r\nHost: hooks.example.com:8443\r\nX-SVC-Event: webhook.test\r\n" +
    'Content-Length: 6\r\n\r\n"Zoë"';
  const headers = { "X-SVC-Event": "webhook.test" };
  expect(encodeRequest(TARGET, headers, '"Zoë"')).toEqual([expected]);
  const bytes = encodeRequest(TARGET, headers, new TextEncoder().encode('"Zoë"'));
  expect(bytes).toEqual([Buffer.from(expected)]);
});

test.each([
  ["Host", "evil.example"],
  ["content-length", "0"],
  ["Transfer-Encoding", "chunked"],
  ["Connection", "close"],
  ["X-Bad", "a\r\nX-Injected: b"],
  ["X-Bad", "a\nb"],
  ["X-Bad", "nul\0"],
  ["X-Bad", "caf\u00e9"],
  ["X Bad", "a"],
  ["X-Bad:", "a"],
  ["", "a"],
])("throws for the header %j with the value %j", (name, value) => {
  expect(() => encodeRequest(TARGET, { [name]: value }, "")).toThrow("cannot be sent");
});

function target(url: string): WebhookTarget {
  const check = checkWebhookUrl(url, { allowHttp: true, allowedNetworks: [] });
  if (check.kind === "refused") throw new Error(check.reason);
  return check.target;
}

const TARGET = target("https://hooks.example.com:8443/in?k=1");
