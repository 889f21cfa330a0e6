import { expect, test } from "bun:test";

import { inkOn } from "../../../src/lib/color.ts";
import { html, logoOf } from "../../../src/oauth/pages/page.ts";
import { inWords } from "../../../src/oauth/pages/sign-in.ts";

test.each([
  [1, "1 second"],
  [59, "59 seconds"],
  [60, "1 minute"],
  [61, "1 minute 1 second"],
  [900, "15 minutes"],
  [86_399, "1439 minutes 59 seconds"],
  [2_592_000, "30 days"],
])("%d seconds are %s", (seconds, words) => {
  expect(inWords(seconds)).toBe(words);
});

test.each([
  ["#ffffff", "#000000"],
  ["#000000", "#ffffff"],
  ["#e67700", "#000000"],
  ["#0b7285", "#ffffff"],
] as const)("on the colour %s the text is %s", (color, ink) => {
  expect(inkOn(color)).toBe(ink);
});

test("every text in a page is escaped once, except markup that the pages built themselves", () => {
  const inner = html`<b>${`&"'<>`}</b>`;
  expect(html`<p title="${`"x"`}">${[inner]}${undefined}${1}</p>`.text).toBe(
    `<p title="&quot;x&quot;"><b>&amp;&quot;&#39;&lt;&gt;</b>1</p>`,
  );
});

test.each([
  ["https://cdn.example/logo.png", "https://cdn.example"],
  ["https://[::1]:8443/logo.png", "https://[::1]:8443"],
  ["https://a;script-src/logo.png", undefined],
  ["https://a'unsafe-inline'/logo.png", undefined],
  ["http://cdn.example/logo.png", undefined],
  ["//cdn.example/logo.png", undefined],
])("a logo at %s adds its origin to the page's policy: %p", (logoUrl, origin) => {
  expect(logoOf({ name: "", primaryColor: "", logoUrl })?.origin).toBe(origin);
});
