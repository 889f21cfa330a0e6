import { describe, expect, spyOn, test } from "bun:test";
import { Readable } from "node:stream";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { BodyRecord, readExcerpt } from "../../../../dispatcher/http/excerpt.ts";

/** The limit of contract 7.10. */
const EXCERPT_BYTES = 4_096;

describe("a plain body", () => {
  test("is shown whole up to 4 KiB and cut one byte later", async () => {
    const text = "x".repeat(EXCERPT_BYTES);
    expect(await excerptOf(utf8(text))).toEqual({ text, truncated: false });
    expect(await excerptOf(utf8(`${text}y`))).toEqual({ text, truncated: true });
  });

  test("drops a character that the cut has split, and shows broken bytes as replacements", async () => {
    const before = "x".repeat(EXCERPT_BYTES - 2);
    expect(await excerptOf(utf8(`${before}🦊`))).toEqual({ text: before, truncated: true });
    expect(await excerptOf(new Uint8Array([0x61, 0xff, 0x62, 0xe2, 0x82]))).toEqual({
      text: "a\ufffdb\ufffd",
      truncated: false,
    });
  });

  test("holds no NUL, which PostgreSQL cannot store", async () => {
    expect((await excerptOf(utf8("a\0b"))).text).toBe("a\ufffdb");
  });

  test("is read as Latin-1 where it says so, and as UTF-8 where it names anything else", async () => {
    const latin = new Uint8Array([0x5a, 0x6f, 0xeb]);
    expect((await excerptOf(latin, textIn("ISO-8859-1"))).text).toBe("Zoë");
    expect((await excerptOf(latin, textIn('"windows-1252"'))).text).toBe("Zoë");
    expect((await excerptOf(latin, textIn("no-such-charset"))).text).toBe("Zo\ufffd");
  });

  test("under an unknown content coding is shown as it came", async () => {
    expect((await excerptOf(utf8("ok"), { "content-encoding": "utf-8" })).text).toBe("ok");
  });
});

describe("a compressed body", () => {
  const codings: [string, (bytes: Uint8Array) => Uint8Array][] = [
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["GZIP", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["br", brotliCompressSync],
  ];

  test.each(codings)(
    "in %s is shown as its text, with the same limit",
    async (coding, compress) => {
      const headers = { "content-encoding": coding };
      const text = "Zoë ".padEnd(EXCERPT_BYTES - 1, "x");
      expect(await excerptOf(compress(utf8(text)), headers)).toEqual({ text, truncated: false });
      const cut = await excerptOf(compress(utf8(`${text}y`)), headers);
      expect(cut).toEqual({ text, truncated: true });
    },
  );

  test.each(codings)(
    "in %s that is empty, broken or cut short never throws",
    async (coding, compress) => {
      const headers = { "content-encoding": coding };
      expect(await excerptOf(new Uint8Array(), headers)).toEqual({ text: "", truncated: false });
      const broken = await excerptOf(utf8("this is not compressed at all"), headers);
      expect(broken.truncated).toBe(true);
      const half = compress(utf8("x".repeat(100))).subarray(0, -3);
      expect((await excerptOf(half, headers)).truncated).toBe(true);
    },
  );

  test.each(codings)(
    "in %s that is a bomb costs no more than its excerpt",
    async (coding, compress) => {
      const bomb = compress(new Uint8Array(16 * 1024 * 1024));
      let unpacked = 0;
      const push = spyOn(Readable.prototype, "push");
      const excerpt = await excerptOf(bomb, { "content-encoding": coding });
      for (const [piece] of push.mock.calls) unpacked += piece?.length ?? 0;
      push.mockRestore();
      // Streams emit pieces of 16 KiB, and one may be under way.
      expect(unpacked).toBeWithin(EXCERPT_BYTES, 2 * 16 * 1024 + 1);
      expect(excerpt).toEqual({ text: "\ufffd".repeat(EXCERPT_BYTES), truncated: true });
    },
  );
});

async function excerptOf(bytes: Uint8Array, headers: Record<string, string> = {}) {
  const body = new BodyRecord(headers);
  body.push(Buffer.from(bytes));
  return readExcerpt(body, headers);
}

const textIn = (charset: string) => ({ "content-type": `text/plain; charset=${charset}` });

const utf8 = (text: string) => new TextEncoder().encode(text);
