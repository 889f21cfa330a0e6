import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "bun:test";

import { NEVER_SET, slimmed, UNUSED_COLORS } from "../../../src/dashboard/styles.ts";

describe("styles that are removed from the library", () => {
  test("are of colours that the library has and no page names", () => {
    const named = new RegExp(
      `["'](?:${UNUSED_COLORS.join("|")})(?:\\.\\d)?["']|mantine-color-(?:${UNUSED_COLORS.join("|")})`,
    );
    const files = readdirSync(APP, { recursive: true, encoding: "utf8" }).filter((name) =>
      /\.(?:tsx?|css)$/.test(name),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(files.filter((name) => named.test(readFileSync(join(APP, name), "utf8")))).toEqual([]);
    for (const one of UNUSED_COLORS) expect(LIBRARY).toContain(`--mantine-color-${one}-filled`);
  });

  test("are of attributes that the library has styles for", () => {
    const written = LIBRARY.replaceAll(/['"]/g, "");
    expect(NEVER_SET.filter((one) => !written.includes(`[${one}]`))).toEqual([]);
  });
});

test("breakpoints of the pages leave no width between below and above", () => {
  const sheets = readdirSync(APP, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".css"))
    .map((name) => readFileSync(join(APP, name), "utf8"));
  const queries = sheets.flatMap((css) => css.match(/@media \([^)]*width[^)]*\)/g) ?? []);
  expect(queries.length).toBeGreaterThan(10);
  expect(queries.filter((one) => !/\(width (?:<|>=) \d+em\)/.test(one))).toEqual([]);
});

test.each([
  [
    "a colour",
    ":root{--mantine-color-pink-6:#f00;--mantine-color-red-6:#f00}",
    ":root{--mantine-color-red-6:#f00}",
  ],
  ["the scale", ".a{margin:calc(-.5rem*var(--mantine-scale))}", ".a{margin:-.5rem}"],
  [
    "the scale before a word",
    ".a{border:calc(.1rem*var(--mantine-scale))solid #000;margin:0 calc(1rem*var(--mantine-scale))calc(2rem*var(--mantine-scale)).5rem}",
    ".a{border:.1rem solid #000;margin:0 1rem 2rem .5rem}",
  ],
  ["an attribute", ".a{b:c}.a[data-inverted]{d:e}", ".a{b:c}"],
  ["one that is nested", ".a:where(.b:has([data-inverted])){b:c}.d{e:f}", ".d{e:f}"],
  ["one selector of several", ".a,.b:where([data-inverted]),.c{b:c}", ".a,.c{b:c}"],
  ["a media query around nothing", "@media (hover:hover){[dir=rtl] .a{b:c}}.d{e:f}", ".d{e:f}"],
])("the bundler removes %s", (_, css, left) => {
  expect(slimmed(css)).toBe(left);
});

test.each([
  ".a:not([data-inverted]){b:c}",
  ".a:where([data-inverted],[data-b]){b:c}",
  ".a:where(:not([data-inverted],[data-b])){b:c}",
  ".a:not(:where([data-inverted]) .b){b:c}",
  ".a[data-inverted-too]{b:c}",
  ".a:where([data-b]:not(:has(c:disabled))),.d:nth-child(2n){e:f}",
  ".a:where(:not(:where([data-inverted]),:has([data-sticky],b))){c:d}",
  "@keyframes a{0%{b:c}to{b:d}}",
  ".a{margin:calc(var(--b)*var(--mantine-scale))}",
])("the bundler keeps %s", (css) => {
  expect(slimmed(css)).toBe(css);
});

const APP = fileURLToPath(new URL("../../../src/dashboard/app/", import.meta.url));

const LIBRARY = readFileSync(Bun.resolveSync("@mantine/core/styles.css", APP), "utf8");
