import { expect, test } from "bun:test";

import type { Cause } from "../../../../dispatcher/alerts/incidents.ts";
import { alertMail, type Recipient, type MailedAlert } from "../../../../dispatcher/alerts/mail.ts";
import { ALERT_KINDS } from "../../../../src/outbox/alert.ts";

test("both parts of the mail have the first and the last failure, and the link to enable it", () => {
  const { subject, text, html = "", to, kind } = mail();
  expect([to, kind]).toEqual(["owner@partner.example", "webhook_alert"]);
  expect(subject).toBe('Webhook subscription "Production" is disabled');
  for (const part of [text, html])
    for (const words of [
      "Hello Ada,",
      "https://partner.example/hook",
      "First event that failed for good",
      "2026-06-01 12:00:00 UTC, HTTP 503",
      "2026-06-01 14:00:00 UTC, no response (timeout)",
      "https://reviews.example/dashboard/webhooks/01JWNB9PR0ZV8X2D3F4G5H6J00",
    ])
      expect(part).toContain(words);
  expect(html).toContain("rgb(11,114,133)");
  expect(text).not.toContain("<");
});

test.each([...ALERT_KINDS])(
  "has a text for %s, with and without the details of the cause",
  (kind) => {
    expect(mail([alert({ kind })]).subject).toContain('"Production"');
    expect(mail([alert({ kind, cause: {} })]).text).not.toContain("First failure");
  },
);

test.each([
  ["failing", 0.4251, "Failing, with a success rate of 42.5% in the last hour"],
  ["degraded", 0.999, "Degraded, with a success rate of 99.9% in the last hour"],
  ["healthy", 1, "Retrying, with a success rate of 100% in the last hour"],
  ["failing", null, "Failing"],
  [null, 0, "Disabled"],
] as const)(
  "names the condition %s at a rate of %p, the beginning, the next attempt and the queue",
  (condition, rate, words) => {
    const since = new Date("2026-06-01T11:30:00Z");
    const retry = { attempts: 2, dueAt: new Date("2026-06-01T14:30:00Z") };
    const summary = { condition, successRate1h: rate, since, endedAt: null, queued: 1200, retry };
    const { text } = alertMail([alert()], owner, {
      serverRoot: "https://reviews.example",
      summary,
    });
    expect(text).toContain(`Condition: ${words}\n`);
    expect(text).toContain("Failing since: 2026-06-01 11:30:00 UTC\n");
    expect(text).toContain("Next attempt: 2026-06-01 14:30:00 UTC, attempt 3 of 4\n");
    expect(text).toContain(`${condition === null ? "Held" : "Queued"} events: 1,200\n`);
  },
);

test("a recovery has the beginning and the end of the incident", () => {
  const [since, endedAt] = [new Date("2026-06-01T11:30:00Z"), new Date("2026-06-01T14:05:00Z")];
  const rest = { queued: 0, retry: undefined };
  const summary = { condition: "healthy", successRate1h: 0.5, since, endedAt, ...rest } as const;
  const options = { serverRoot: "https://reviews.example", summary };
  const { text } = alertMail([alert({ kind: "recovered" })], owner, options);
  expect(text).toContain("Began: 2026-06-01 11:30:00 UTC\n");
  expect(text).toContain("Recovered: 2026-06-01 14:05:00 UTC\n");
  expect(text).not.toMatch(/Failing since|Queued events:|Next attempt/);
});

test("leads with the gravest of several alerts and names the others", () => {
  const kinds = ["failures_5", "failures_10", "failures_18", "disabled"] as const;
  const { subject, text } = mail(kinds.map((kind) => alert({ kind })));
  expect(subject).toEndWith("is disabled");
  expect(text).toContain("18 consecutive failures");
});

test("the latest alert leads, also a recovery", () => {
  const later = new Date("2026-06-01T14:10:00Z");
  const { subject } = mail([alert(), alert({ kind: "recovered", raisedAt: later })]);
  expect(subject).toEndWith("has recovered");
});

test("alerts of several subscriptions are one mail, with a line for each", () => {
  const other = alert({ subscriptionId: "other", label: "Nightly", kind: "head_retrying" });
  const { subject, text } = mail([alert(), other]);
  expect(subject).toBe("Alerts for 2 webhook subscriptions");
  expect(text).toContain("Nightly: Two attempts to deliver a webhook event");
  expect(text).toContain("https://reviews.example/dashboard/webhooks\n");
});

test("the mail greets an address without a name", () => {
  const { text } = mail(undefined, { name: null });
  expect(text).toStartWith("Hello,\n");
});

test.each(["label", "webhookUrl"] as const)("writes the field %s as text", (field) => {
  const { html } = mail([alert({ [field]: `<b title="x">'&` })]);
  expect(html).not.toContain("<b ");
  expect(html).toContain("&lt;b title=&quot;x&quot;&gt;&#39;&amp;");
});

test.each([
  ["tls", "expired", "The certificate has expired", "Renew it"],
  ["tls", "of_a_newer_version", "tls", undefined],
  // A cause that version 0.1.0 stored has no reason.
  ["tls", undefined, "tls", undefined],
  ["timeout", null, "timeout", undefined],
])("tells of a failure with %s and the reason %p as %s", (code, reason, title, advice) => {
  const stored = { ...failure, status_code: null, error_code: code, tls_reason: reason ?? null };
  if (reason === undefined) Reflect.deleteProperty(stored, "tls_reason");
  const cause = { first_failure: stored, last_failure: stored };
  const { text } = mail([alert({ cause })]);
  expect(text).toMatch(
    new RegExp(`First failure: 2026-06-01 12:00:00 UTC, no response \\(${title}\\)`),
  );
  if (advice === undefined) expect(text).not.toContain(`${title}. `);
  else expect(text).toMatch(new RegExp(`${title}\\. .*${advice}`));
});

const owner: Recipient = {
  email: "owner@partner.example",
  name: "Ada",
  company: "Northwind",
  logoUrl: null,
  brand: "Northwind Reviews",
  primaryColor: "#0b7285",
};

const failure = {
  at: "2026-06-01T12:00:00.000+00:00",
  event: "review_received",
  event_id: "01JWNB9PR0ZV8X2D3F4G5H6J01",
  status_code: 503,
  error_code: "http_status",
  tls_reason: null,
};

const cause: Cause = {
  consecutive_failure_count: 20,
  first_failure: failure,
  last_failure: {
    ...failure,
    at: "2026-06-01T14:00:00.000+00:00",
    status_code: null,
    error_code: "timeout",
  },
  oldest_waiting_since: "2026-06-01T11:00:00.000+00:00",
};

const alert = (fields: Partial<MailedAlert> = {}): MailedAlert => ({
  kind: "disabled",
  subscriptionId: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  label: "Production",
  webhookUrl: "https://partner.example/hook",
  raisedAt: new Date("2026-06-01T14:00:01Z"),
  cause,
  ...fields,
});

const mail = (alerts: readonly MailedAlert[] = [alert()], to: Partial<Recipient> = {}) =>
  alertMail(alerts, { ...owner, ...to }, { serverRoot: "https://reviews.example" });
