import { describe, expect, spyOn, test } from "bun:test";

import { argon2, ARGON2ID_PREFIX, argon2Of } from "../../../src/lib/foreign-hashes.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { Problem } from "../../../src/lib/problem.ts";

describe("password hashes", () => {
  const passwords = createPasswords();

  test("are argon2id with m=19456, t=2, p=1 and a salt of their own", async () => {
    const [one, two] = await Promise.all([passwords.hash("secret"), passwords.hash("secret")]);
    expect(one).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    expect(one).not.toBe(two);
    expect(passwords.needsRehash(one)).toBe(false);
  });

  test("match their password and no other", async () => {
    const hash = await passwords.hash("secret");
    expect(await passwords.verify("secret", hash)).toBe(true);
    expect(await passwords.verify("Secret", hash)).toBe(false);
  });

  test("made with other parameters still match, and ask to be renewed", async () => {
    const old = await Bun.password.hash("secret", {
      algorithm: "argon2id",
      memoryCost: 8192,
      timeCost: 1,
    });
    expect(await passwords.verify("secret", old)).toBe(true);
    expect(passwords.needsRehash(old)).toBe(true);
  });

  const NFC = "Ma\u00f1ana caf\u00e9 \u00e9t\u00e9 77";
  test("match in NFC and NFD, and an older one as it was typed", async () => {
    const NFD = NFC.normalize("NFD");
    for (const typed of [NFC, NFD]) {
      const hash = await passwords.hash(typed);
      expect(await argon2.verify(NFC, hash)).toBe(true);
      for (const other of [NFC, NFD]) expect(await passwords.verify(other, hash)).toBe(true);
      expect(await passwords.verify(`${NFD}!`, hash)).toBe(false);
    }
    // A product that hashed what was typed.
    expect(await passwords.verify(NFD, await argon2.hash(NFD))).toBe(true);
    expect(await passwords.verify(NFD, null)).toBe(false);
  });

  test("are the same with and without the native library", async () => {
    const bun = argon2Of();
    for (const [maker, verifier] of [
      [argon2, bun],
      [bun, argon2],
    ] as const) {
      const hash = await maker.hash("Pässwörd");
      expect(hash).toStartWith(ARGON2ID_PREFIX);
      expect(await verifier.verify("Pässwörd", hash)).toBe(true);
      expect(await verifier.verify("pässwörd", hash)).toBe(false);
    }
  });

  test("that are missing match no password and cost the same work", async () => {
    const work = spyOn(argon2, "verify");
    for (const stored of [null, await passwords.hash("secret")])
      expect(await passwords.verify("wrong", stored)).toBe(false);
    const parameters = work.mock.calls.flatMap(([, hash]) =>
      typeof hash === "string" ? [hash.split("$").slice(0, 4)] : [],
    );
    const expected = ["", "argon2id", "v=19", "m=19456,t=2,p=1"];
    expect(parameters).toEqual([expected, expected]);
    work.mockRestore();
  });
});

describe("the queue of passwords", () => {
  test("lets `waiting` requests wait and rejects the next one with 503 and Retry-After", async () => {
    const passwords = createPasswords({ running: 1, waiting: 2 });
    const taken = [1, 2, 3].map(() => passwords.verify("wrong", null));
    const refused = await passwords.verify("wrong", null).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Problem);
    expect(refused).toMatchObject({
      code: "overloaded",
      status: 503,
      headers: { "Retry-After": "5" },
    });
    expect(await Promise.all(taken)).toEqual([false, false, false]);
  });

  test("has capacity again when earlier requests end, even if one of them failed", async () => {
    const passwords = createPasswords({ running: 1, waiting: 0 });
    expect(await passwords.verify("x", "no hash at all").catch(() => "failed")).toBe("failed");
    expect(await passwords.verify("wrong", null)).toBe(false);
  });

  test("lets networks with a wrong password not delay others, until it is long enough ago", async () => {
    expect(await turnOf("198.51.100.1", { suspectForMs: 60_000 })).toBe(1);
    expect(await turnOf("198.51.100.1", { suspectForMs: 0 })).toBe(3);
  });

  test("lets the addresses of an IPv4 /24 delay others by one hash", async () => {
    const crowd = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    expect(await turnOf("198.51.100.1", { suspectForMs: 0, crowd })).toBe(1);
    expect(await turnOf("192.0.2.4", { suspectForMs: 0, crowd })).toBe(3);
  });

  test("lets trusted requests pass others, also from a network with a wrong password", async () => {
    expect(await turnOf(CROWD[2], { suspectForMs: 60_000, isTrusted: true })).toBe(1);
    expect(await turnOf("198.51.100.1", { suspectForMs: 0, isTrusted: true })).toBe(1);
  });

  test("lets 512 requests wait by default", async () => {
    const passwords = createPasswords({ running: 1 });
    const outcomes = Array.from({ length: 514 }, () =>
      passwords.verify("x", "no hash at all").then(
        () => "done",
        (error: unknown) => (error instanceof Problem ? error.code : "failed"),
      ),
    );
    const refused = (await Promise.all(outcomes)).filter((one) => one === "overloaded");
    expect(refused).toHaveLength(1);
  });
});

const CROWD = ["192.0.2.1", "203.0.113.1", "198.18.0.1"] as const;

/**
 * Returns the turn of an address that comes after those of a crowd with wrong passwords, while another hash runs. The
 * first turn is the one after that hash.
 */
async function turnOf(
  address: string,
  {
    suspectForMs,
    isTrusted = false,
    crowd = CROWD,
  }: { suspectForMs: number; isTrusted?: boolean; crowd?: readonly string[] },
): Promise<number> {
  const passwords = createPasswords({ running: 1, suspectForMs });
  const hash = await passwords.hash("right");
  for (const from of crowd) await passwords.verify("wrong", hash, from);
  const ended: string[] = [];
  const verify = async (name: string, from: string, trusted: boolean) => {
    await passwords.verify("right", hash, from, trusted);
    ended.push(name);
  };
  await Promise.all([
    verify("running", crowd[0] ?? "", false),
    ...crowd.map((from) => verify("crowd", from, false)),
    verify("asked", address, isTrusted),
  ]);
  return ended.indexOf("asked");
}
