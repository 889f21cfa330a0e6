import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";

import { DIGEST_KINDS, digestOf, KEY_KINDS, keyOf } from "../../../src/lib/kind-key.ts";

test("the keys of two things differ if their kinds or parts differ, whatever the parts contain", () => {
  const thing = fc.constantFrom(...KINDS).chain((kind) => {
    const many = KEY_KINDS[kind].length;
    return fc.tuple(fc.constant(kind), fc.array(part, { minLength: many, maxLength: many }));
  });
  fc.assert(
    fc.property(thing, thing, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect(keyFrom(...one) === keyFrom(...other)).toBe(isSame);
    }),
    { numRuns: 20_000 },
  );
});

test("the digests of different kinds differ, though a value imitates one of another kind", () => {
  const values = DIGEST_KINDS.flatMap((kind) =>
    ["\0", ":", " ", "%00", "\uFFFD"].map((between) => `${kind}${between}31`),
  );
  const known = new Map<string, string>();
  for (const kind of DIGEST_KINDS)
    for (const value of ["", "31", ...values, digestOf("second-factor", 31)]) {
      const digest = digestOf(kind, value);
      const thing = `${kind} ${kind === "email" ? value.replace("\0", "\uFFFD") : value}`;
      expect([thing, known.get(digest) ?? thing]).toEqual([thing, thing]);
      known.set(digest, thing);
    }
});

test("no source makes a key or a digest out of a template, or looks one up", () => {
  const root = join(import.meta.dir, "../../..");
  const sources = ["src", "dispatcher", "db"].flatMap((tree) => [
    ...new Bun.Glob(`${tree}/**/*.{ts,tsx}`).scanSync({ cwd: root }),
  ]);
  const found = sources
    .filter((file) => !OTHER_KEYS.some((other) => file.startsWith(other)))
    .flatMap((file) => madeIn(readFileSync(join(root, file), "utf8")).map((text) => [file, text]));
  expect(found).toEqual([]);
  expect(madeIn(PLANTED.join("\n"))).toHaveLength(PLANTED.length);
});

/** Returns the places where a text with at least one value inside is used as a key. */
function madeIn(source: string): string[] {
  return [
    ...source.matchAll(/\b(?:emailDigest|budgetDigest|digestOf|keyOf)\([^()]*`[^`]*\$\{[^\n]*/g),
    ...source.matchAll(/\.(?:get|set|has|add|delete)\(\s*`[^`]*\$\{[^`]*`\s*[,)]/g),
    ...source.matchAll(/\bkey(?::|\s=)\s*`[^`]*\$\{[^`]*`[^\n]*/g),
    ...source.matchAll(/\b\w*Key\s*=\s*\([^\n]*=>\s*`[^`]*\$\{[^`]*\$\{[^\n]*/g),
  ].map(([text]) => text);
}

/** What 0.1.0 had, and its neighbours. */
const PLANTED = [
  "const lockKey = (userId: number) => emailDigest(`second-factor:${userId}`);",
  "counts.get(`${a} ${b}`);",
  "const key = `${jti} ${ip}`;",
  "return { key: `user:${id}`, limit };",
  "const slotKey = (a: string, b: string) => `${a}:${b}`;",
];

/** Pages in the browser, packages for partners and the description of the API, whose keys guard nothing. */
const OTHER_KEYS = ["src/dashboard/", "src/sdk/", "src/http/openapi/"];

type Kind = keyof typeof KEY_KINDS;
const KINDS = Object.keys(KEY_KINDS) as Kind[];

/** Parts made of the characters that keys are made of, and of whole kinds. */
const part = fc
  .array(fc.constantFrom(":", "%", "%3A", "%25", "\0", " ", "1", "a", ...Object.keys(KEY_KINDS)), {
    maxLength: 4,
  })
  .map((pieces) => pieces.join(""));

function keyFrom(kind: Kind, parts: readonly string[]): string {
  return Reflect.apply(keyOf, undefined, [kind, ...parts]);
}
