import { describe, expect, test } from "bun:test";

import { outcomeOf } from "../../../../dispatcher/mail/transport.ts";

describe("the answer of a mail server", () => {
  const table: [command: string, code: number, kind: "refused" | "failed"][] = [
    ["RCPT TO", 550, "refused"],
    ["RCPT TO", 553, "refused"],
    ["RCPT TO", 503, "failed"],
    ["RCPT TO", 450, "failed"],
    ["RCPT TO", 421, "failed"],
    ["DATA", 554, "refused"],
    ["DATA", 552, "refused"],
    ["DATA", 451, "failed"],
    // The reply is about this client. After a change of the settings the mail is sent.
    ["MAIL FROM", 550, "failed"],
    ["MAIL FROM", 530, "failed"],
    ["AUTH PLAIN", 535, "failed"],
    ["CONN", 554, "failed"],
    ["EHLO", 502, "failed"],
  ];
  for (const [command, code, kind] of table)
    test(`${code} to ${command}: ${kind}`, () =>
      expect(outcomeOf(answer(command, code))).toEqual({
        kind,
        errorCode: `smtp_${code}`,
        lastError: `${command} failed with reply ${code}.`,
      }));
});

test("keeps the two numbers of an answer and none of its words", () => {
  const outcome = outcomeOf(answer("RCPT TO", 550, "5.1.1 <ada@reviews.example> unknown"));
  expect(outcome).toMatchObject({ lastError: "RCPT TO failed with reply 550 5.1.1." });
  expect(JSON.stringify(outcome)).not.toContain("ada");
});

test("does not repeat text in the place of a command", () => {
  const outcome = outcomeOf(answer("RCPT TO:<ada@reviews.example>", 450));
  expect(outcome).toMatchObject({
    kind: "failed",
    lastError: "The connection failed with reply 450.",
  });
});

describe("an error without an answer", () => {
  const table: [code: unknown, kind: string, errorCode: string][] = [
    ["ECONNECTION", "failed", "connection_failed"],
    ["ESOCKET", "failed", "connection_failed"],
    ["ETIMEDOUT", "failed", "timeout"],
    ["EDNS", "failed", "dns_failed"],
    ["ETLS", "failed", "tls_failed"],
    ["EAUTH", "failed", "auth_failed"],
    ["EPROTOCOL", "failed", "protocol_error"],
    ["EENVELOPE", "refused", "unsendable"],
    ["EMESSAGE", "refused", "unsendable"],
    ["toString", "failed", "unexpected"],
    [undefined, "failed", "unexpected"],
  ];
  for (const [code, kind, errorCode] of table)
    test(`${String(code)}: ${kind}, ${errorCode}`, () =>
      expect(outcomeOf(Object.assign(new Error("ada@reviews.example"), { code }))).toMatchObject({
        kind,
        errorCode,
      }));

  test("is nothing but an object: anything may be thrown", () =>
    expect(outcomeOf("ada@reviews.example")).toMatchObject({ errorCode: "unexpected" }));
});

function answer(command: string, responseCode: number, text = "no <ada@reviews.example>") {
  const response = `${responseCode} ${text}`;
  return Object.assign(new Error(`Failed: ${response}`), {
    code: "EENVELOPE",
    command,
    response,
    responseCode,
  });
}
