import { describe, expect, test } from "bun:test";

import { flagStatusMail, homeownerNotice } from "../../../src/intake/notices.ts";
import type { Subject } from "../../../src/intake/queries/notices.ts";

describe("the notice to the homeowner", () => {
  test("has the same content in both parts, with the tenant's name and colour", () => {
    const { subject, text, html = "" } = notice();
    expect(subject).toBe("Alder East responded to your review");
    for (const part of [text, html])
      for (const words of ["Hello Ada,", "Alder Plumbing", "We are sorry.", "Northwind Reviews"])
        expect(part).toContain(words);
    expect(html).toContain("rgb(11,114,133)");
    expect(text).not.toContain("<");
  });

  test("of a response written on the site links to the site", () => {
    const { text, html } = notice({ responseBody: null });
    expect(text).toContain("You can read the response on Google.");
    expect(html).not.toContain("blockquote");
  });

  test("greets an anonymous reviewer, and shows our name without a brand", () => {
    const { text, sender } = notice({ reviewer: null, brand: null });
    expect(text).toStartWith("Hello,\n");
    expect(text).toEndWith("ReviewRelay\n");
    expect(sender).toBeUndefined();
  });

  test.each(["storeName", "accountName", "siteName", "reviewer", "responseBody", "brand"] as const)(
    "escapes the field %s",
    (field) => {
      const { html } = notice({ [field]: `<b title="x">'&` });
      expect(html).not.toContain("<b ");
      expect(html).toContain("&lt;b title=&quot;x&quot;&gt;&#39;&amp;");
    },
  );

  test.each(["red", "#12345", "#1234567", "#00000g", 'red"><script>', "#123456;x:y", ""])(
    "uses our colour instead of %p",
    (primaryColor) => {
      const { html } = notice({ primaryColor });
      expect(html).toContain("rgb(31,111,235)");
      if (primaryColor !== "") expect(html).not.toContain(primaryColor);
    },
  );
});

test.each([
  ["under_review", "is under review"],
  ["accepted", "was accepted"],
  ["rejected", "was rejected"],
  ["withdrawn", "was withdrawn"],
])("the mail about a flag that is %s says that it %s", (status, words) => {
  const owner = { email: "owner@x.example", name: "<Kim>" };
  const config = { serverRoot: "https://reviews.example" };
  const { to, subject, text, html } = flagStatusMail({ owner, status }, about, config);
  expect(to).toBe(owner.email);
  for (const part of [subject, text, html]) expect(part).toContain(words);
  expect(text).toContain("Hello <Kim>,");
  expect(html).toContain("Hello &lt;Kim&gt;,");
  expect(text).toContain("    https://reviews.example/dashboard/reviews/42\n");
});

const about: Subject = {
  reviewId: 42,
  storeName: "Alder East",
  accountName: "Alder Plumbing",
  siteName: "Google",
  rate: 2,
  reviewer: "Ada",
  responseBody: "We are sorry.",
  brand: "Northwind Reviews",
  primaryColor: "#0b7285",
  logoUrl: null,
};

const notice = (fields: Partial<Subject> = {}) =>
  homeownerNotice("ada@x.example", { ...about, ...fields });
