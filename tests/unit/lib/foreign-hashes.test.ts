import { describe, expect, test } from "bun:test";

import { hashError, verifyHash } from "../../../src/lib/foreign-hashes.ts";
import { OLD_HASHES, OLD_PASSWORD } from "../../support/platform-lines.ts";

describe("a hash of another system", () => {
  test.each(Object.entries(OLD_HASHES))(
    "made by %s matches its password alone",
    async (_, hash) => {
      expect(hashError(hash)).toBeUndefined();
      expect(await verifyHash(OLD_PASSWORD, hash)).toBe(true);
      expect(await verifyHash(OLD_PASSWORD.slice(1), hash)).toBe(false);
      expect(await verifyHash("", hash)).toBe(false);
    },
  );

  test.each(["2a", "2b", "2y"])("of bcrypt may begin with $%s", async (prefix) => {
    const hash = OLD_HASHES.bcrypt.replace("2y", prefix);
    expect(await verifyHash(OLD_PASSWORD, hash)).toBe(true);
  });

  test("of bcrypt uses the first 72 bytes of a password", async () => {
    const hash = "$2b$06$12TJYNFonWG2RgSw5A8Ib.LQy6hX.E0MZbHnpaRNmwe.vm9otcn1K";
    expect(await verifyHash("x".repeat(80), hash)).toBe(true);
    expect(await verifyHash("x".repeat(71), hash)).toBe(false);
  });

  test("of phpass may have the prefix of phpBB", async () => {
    expect(await verifyHash(OLD_PASSWORD, OLD_HASHES.phpass.replace("$P$", "$H$"))).toBe(true);
  });

  const { bcrypt, argon2id, django, scrypt, phpass } = OLD_HASHES;
  test.each([
    ["cost", bcrypt.replace("$06$", "$14$"), bcrypt.replace("$06$", "$15$")],
    ["m", argon2id.replace("m=65536", "m=131072"), argon2id.replace("m=65536", "m=131073")],
    ["t", argon2id.replace("t=2", "t=10"), argon2id.replace("t=2", "t=11")],
    ["p", argon2id.replace("p=4", "p=8"), argon2id.replace("p=4", "p=9")],
    ["iterations", django.replace("10000", "2000000"), django.replace("10000", "2000001")],
    ["ln and r", scrypt.replace("ln=14", "ln=17"), scrypt.replace("ln=14", "ln=18")],
    ["p", scrypt.replace("p=1", "p=4"), scrypt.replace("p=1", "p=5")],
    ["rounds", phpass.replace("$P$B", "$P$G"), phpass.replace("$P$B", "$P$H")],
  ])(
    "with the highest allowed %s is accepted, and one above it refused",
    (name, highest, above) => {
      expect(hashError(highest)).toBeUndefined();
      expect(hashError(above)).toBe(`costs too much to verify: ${name} is too high`);
    },
  );

  test.each([
    ["", "5f4dcc3b5aa765d61d8327deb882cf99"],
    ["of argon2d", argon2id.replace("argon2id", "argon2d")],
    ["with a cut digest", bcrypt.slice(0, -1)],
    ["with a line break", `${bcrypt}\n`],
  ])("that is unknown %s is refused", async (_, hash) => {
    expect(hashError(hash)).toContain("must be a hash of bcrypt");
    expect(verifyHash("x", hash)).rejects.toThrow("password hash is unknown");
  });
});
