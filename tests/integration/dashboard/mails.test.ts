import { describe, expect, test } from "bun:test";

import type { Browser } from "playwright-core";

import { alertMail, type MailedAlert } from "../../../dispatcher/alerts/mail.ts";
import { brandedMail } from "../../../src/lib/branded-mail.ts";
import type { AlertKind } from "../../../src/outbox/alert.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { allErrors, fits, LOOKS } from "../../support/dashboard/dashboard.ts";
import { lacks } from "../../support/needs.ts";

describe.skipIf(lacks("chromium"))("a mail in a browser", () => {
  const failure = {
    at: "2026-06-01T12:00:00.000+00:00",
    event: "review_received",
    event_id: "01JWNB9PR0ZV8X2D3F4G5H6J01",
    status_code: 503,
    error_code: "http_status",
    tls_reason: null,
  };
  const alert = (kind: AlertKind, subscriptionId = "one"): MailedAlert => ({
    kind,
    subscriptionId,
    label: subscriptionId === "one" ? "Production" : "Nightly",
    webhookUrl: "https://partner.example/webhooks/a-rather-long-path/reviews",
    raisedAt: new Date("2026-06-01T14:00:00Z"),
    cause: { first_failure: failure, last_failure: failure, oldest_waiting_since: failure.at },
  });
  const to = {
    email: "owner@partner.example",
    name: "Ada",
    company: "Northwind",
    logoUrl: null,
    brand: "Northwind Reviews",
    primaryColor: "#0b7285",
  };
  const config = { serverRoot: "https://reviews.example" };
  const longAndBright = brandedMail(
    {
      subject: 'Webhook subscription "Test" is disabled',
      name: "Ada",
      paragraphs: ["The webhook is disabled.", "Its events are held."],
      facts: [["Webhook", `https://hooks.example/${"long".repeat(40)}`]],
      link: { words: "Show the problem", href: "https://reviews.example/dashboard" },
      quote: "The endpoint answers with\na sign-in page.",
      code: "012345",
      reason: "You get this email because you own the webhook.",
    },
    { brand: "Northwind", primaryColor: "#ffee00", logoUrl: null },
  );

  test.each([
    ["disabled", alertMail([alert("failures_18"), alert("disabled")], to, config)],
    ["retrying", alertMail([alert("head_retrying")], to, config)],
    ["of two subscriptions", alertMail([alert("disabled"), alert("recovered", "two")], to, config)],
    ["recovered, without a brand", alertMail([alert("recovered")], { ...to, brand: null }, config)],
    ["with a long address and a bright colour", longAndBright],
  ])("has no faults and fits, in light and dark: %s", async (_, { html = "" }) => {
    for (const { width, colorScheme } of LOOKS) {
      const page = await browser.newPage({ viewport: { width, height: 500 }, colorScheme });
      await page.setContent(html);
      expect(await fits(page)).toBe(true);
      // A mail has no landmarks; those of its reader are around it.
      const faults = (await allErrors(page)).filter((one) => !/^(landmark|region|page)/.test(one));
      expect(faults).toEqual([]);
      await page.close();
    }
  });
});

const browser: Browser = browserFixture(openBrowser);
