import { expect, test } from "bun:test";

import { brandedMail } from "../../../src/lib/branded-mail.ts";
import { lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { allErrors, fits } from "../../support/dashboard/dashboard.ts";

test.skipIf(lacks("chromium"))("axe finds nothing in a mail, in light and dark", async () => {
  const { html } = brandedMail(
    {
      subject: 'Webhook subscription "Test" is disabled',
      greeting: "Hello Ada,",
      paragraphs: ["The webhook is disabled.", "Its events are held."],
      facts: [["Webhook", `https://hooks.example/${"long".repeat(40)}`]],
      link: { words: "Show the problem", href: "https://reviews.example/dashboard" },
      quote: "The endpoint answers with\na sign-in page.",
    },
    { brand: "Northwind", primaryColor: "#ffee00" },
  );
  const browser = await openBrowser();
  const page = await browser.newPage();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.setContent(html);
    expect(await allErrors(page)).toEqual([]);
    expect(await fits(page)).toBe(true);
  }
  await browser.close();
});
