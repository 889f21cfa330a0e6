import { expect, test } from "bun:test";

import { createSecretBox, fingerprint, openingOnce } from "../../../src/lib/secrets.ts";

test("opens a sealed text with the same associated data only", () => {
  const sealed = box.seal("s3cret ✓", "webhook:1:A");
  expect(sealed).not.toContain("s3cret");
  expect(box.open(sealed, "webhook:1:A")).toBe("s3cret ✓");
  expect(() => box.open(sealed, "webhook:1:B")).toThrow();
});

test("never seals the same text the same way twice", () => {
  expect(box.seal("same", "x")).not.toBe(box.seal("same", "x"));
});

test("does not open a changed ciphertext", () => {
  const sealed = box.seal("secret", "x");
  const changed = sealed.slice(0, -2) + (sealed.endsWith("AA") ? "BB" : "AA");
  expect(() => box.open(changed, "x")).toThrow();
});

test("opens with the previous key, seals with the current one and tells them apart", () => {
  const old = box.seal("secret", "x");
  const rotated = createSecretBox({ current: key(2), previous: key(1) });
  expect(rotated.open(old, "x")).toBe("secret");
  expect(rotated.isCurrent(old)).toBe(false);
  expect(rotated.isCurrent(rotated.seal("secret", "x"))).toBe(true);
});

test("names the missing key and not the sealed text", () => {
  const sealed = box.seal("secret", "x");
  expect(() => createSecretBox({ current: key(3) }).open(sealed, "x")).toThrow(
    /key id [0-9a-f]{8}.*MASTER_KEY/,
  );
});

test("opens a kept text again only with the same associated data, and a wrong one never", () => {
  let opened = 0;
  const open = openingOnce({ open: (...given) => (opened++, box.open(...given)) });
  const sealed = box.seal("s3cret ✓", "provider:a b");
  for (let i = 0; i < 3; i++) expect(open(sealed, "provider:a b")).toBe("s3cret ✓");
  expect(opened).toBe(1);
  for (let i = 0; i < 3; i++) expect(() => open(sealed, "provider:a")).toThrow();
  expect(opened).toBe(4);
});

test("shows 8 bytes of the SHA-256 as a fingerprint", () => {
  // printf abc | sha256sum
  expect(fingerprint("abc")).toBe("ba7816bf8f01cfea");
});

const key = (fill: number) => new Uint8Array(32).fill(fill);

const box = createSecretBox({ current: key(1) });
