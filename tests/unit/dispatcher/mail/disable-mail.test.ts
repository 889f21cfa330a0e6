import { expect, test } from "bun:test";

import { disableMail } from "../../../../dispatcher/mail/disable-mail.ts";
import type { Failure, OwnerRow } from "../../../../dispatcher/mail/queries.ts";

const owner: OwnerRow = {
  subscriptionId: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  label: "Production",
  webhookUrl: "https://partner.example/hook",
  email: "owner@partner.example",
  name: "Ada",
  brand: "Northwind Reviews",
  primaryColor: "#0b7285",
};
const failure = (fields: Partial<Failure>): Failure => ({
  eventId: "01JWNB9PR0ZV8X2D3F4G5H6J01",
  event: "review_received",
  at: new Date("2026-06-01T12:00:00Z"),
  statusCode: 503,
  errorCode: "http_status",
  ...fields,
});
const newest = failure({
  at: new Date("2026-06-01T14:00:00Z"),
  statusCode: null,
  errorCode: "timeout",
});
const mail = (
  fields: Partial<OwnerRow> = {},
  failures: readonly Failure[] = [newest, failure({})],
) => disableMail({ ...owner, ...fields }, failures, { serverRoot: "https://reviews.example" });

test("the mail says in both parts what failed first and last, and where to enable it", () => {
  const { subject, text, html = "", to } = mail();
  expect(to).toBe("owner@partner.example");
  expect(subject).toBe('Northwind Reviews: Webhook subscription "Production" is disabled');
  for (const part of [text, html])
    for (const words of [
      "Hello Ada,",
      "https://partner.example/hook",
      "2026-06-01T12:00:00.000+00:00, answered with status 503, review_received",
      "2026-06-01T14:00:00.000+00:00, no answer (timeout)",
      "https://reviews.example/dashboard/webhooks/01JWNB9PR0ZV8X2D3F4G5H6J00",
    ])
      expect(part).toContain(words);
  expect(html).toContain("color:#0b7285");
  expect(text).not.toContain("<");
});

test("the mail is ours without a white label, and goes out without a failure to name", () => {
  const { subject, text } = mail({ brand: null }, []);
  expect(subject).toStartWith("ReviewRelay: ");
  expect(text).not.toContain("First failure");
});

test.each(["label", "webhookUrl", "name", "brand"] as const)(
  "writes the field %s as text",
  (field) => {
    const { html } = mail({ [field]: `<b title="x">'&` });
    expect(html).not.toContain("<b ");
    expect(html).toContain("&lt;b title=&quot;x&quot;&gt;&#39;&amp;");
  },
);
