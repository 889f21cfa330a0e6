import { describe, expect, test } from "bun:test";

import { MAX_CHUNK_LINE_BYTES, ResponseParser } from "../../../../dispatcher/http/message.ts";

describe("valid answers", () => {
  test("give status, headers in lower case with repeats joined, and the body", () => {
    const parser = parse(
      `${OK}X-One:  a b \t\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Empty:\r\n__proto__: x\r\nconstructor: y\r\nContent-Length: 5\r\n\r\nhello`,
    );
    expect(verdict(parser)).toEqual({
      state: "complete",
      status: 200,
      body: "hello",
      isCut: false,
      isReusable: true,
    });
    expect(Object.entries(parser.head?.headers ?? {})).toEqual([
      ["x-one", "a b"],
      ["set-cookie", "a=1, b=2"],
      ["x-empty", ""],
      ["__proto__", "x"],
      ["constructor", "y"],
      ["content-length", "5"],
    ]);
  });

  test.each([
    ["length", "hello", true],
    ["empty", "", true],
    ["no_content", "", true],
    ["no_reason", "no", true],
    ["chunked", "hello world", true],
    ["trailers", "0123456789", true],
    ["interim", "ok", true],
    ["close", "ok", false],
    ["http10", "ok", false],
    ["excess", "ok", false],
    ["excess_chunks", "hello", false],
    ["excess_no_content", "", false],
  ] as const)(
    "of the kind %s complete with their body, reusable or not",
    (kind, body, isReusable) => {
      expect(verdict(parse(ANSWERS[kind]))).toMatchObject({ state: "complete", body, isReusable });
    },
  );

  test("without a length complete when the receiver closes, and are never reusable", () => {
    const parser = parse(ANSWERS.until_close);
    expect(parser.state).toBe("data");
    parser.end();
    expect(verdict(parser)).toMatchObject({
      state: "complete",
      body: "no length at all",
      isCut: false,
      isReusable: false,
    });
  });

  test("with a length or chunks are cut when the receiver closes in their middle", () => {
    for (const text of [ANSWERS.length.slice(0, -1), ANSWERS.chunked.slice(0, -1)]) {
      const parser = parse(text);
      parser.end();
      expect(verdict(parser)).toMatchObject({ state: "complete", isCut: true, isReusable: false });
    }
  });

  test("have no body after 204 and 304, whatever their headers say", () => {
    for (const status of ["204 No Content", "304 Not Modified"])
      expect(parse(`HTTP/1.1 ${status}\r\nContent-Length: 5\r\n\r\n`)).toMatchObject({
        state: "complete",
      });
  });
});

const MALFORMED_CHUNKS = {
  "no size": "\r\n0\r\n\r\n",
  "a size that is not hexadecimal": "g\r\nx\r\n0\r\n\r\n",
  "a negative size": "-1\r\nx\r\n0\r\n\r\n",
  "a prefixed size": "0x1\r\nx\r\n0\r\n\r\n",
  "a size of nine digits": "100000000\r\nx",
  "a space before the size": " 1\r\nx\r\n0\r\n\r\n",
  "a bare LF after the size": "1\nx\r\n0\r\n\r\n",
  "a bare LF after the data": "1\r\nx\n0\r\n\r\n",
  "more data than its size": "1\r\nxy\r\n0\r\n\r\n",
  "a bare CR in an extension": "1;a\rb\r\nx\r\n0\r\n\r\n",
  "a bare LF in the trailers": "0\r\nA: b\n\r\n",
};

describe("malformed answers", () => {
  test.each(Object.entries(MALFORMED))(
    "with %s are invalid, however they are cut",
    (_what, text) => {
      for (let cut = 0; cut <= text.length; cut++) {
        const parser = parse(...splitAt(text, cut));
        expect(parser.state).toBe("invalid");
        expect(parser.head).toBeUndefined();
        expect(parser.problem).toStartWith("the response");
      }
    },
  );

  test.each(Object.entries(MALFORMED_CHUNKS))(
    "with a chunk of %s keep their status",
    (_what, chunks) => {
      const text = `${OK}Transfer-Encoding: chunked\r\n\r\n${chunks}`;
      for (let cut = 0; cut <= text.length; cut++)
        expect(parse(...splitAt(text, cut))).toMatchObject({
          state: "invalid",
          head: { statusCode: 200 },
        });
    },
  );
});

function chunkLine(bytes: number): string {
  return `${OK}Transfer-Encoding: chunked\r\n\r\n${"1;".padEnd(bytes, "x")}`;
}

/** Makes trailers of `bytes` bytes with their blank line, in lines that are short enough. */
function trailersOf(bytes: number): string {
  const last = "B: ".padEnd(1 + ((bytes - 5) % 800), "x");
  const before = bytes - last.length - 4;
  const lines = `A: ${"x".repeat(795)}\r\n`.repeat(before / 800);
  return `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${lines}${last}\r\n\r\n`;
}

describe("limits", () => {
  test("take a head of 16 KiB and refuse one byte more, complete or not", () => {
    const frame = `${OK}Content-Length: 0\r\nX: \r\n\r\n`;
    const head = (bytes: number) => frame.replace("X: ", `X: ${"x".repeat(bytes - frame.length)}`);
    expect(parse(head(HEAD_BYTES)).state).toBe("complete");
    expect(parse(head(HEAD_BYTES + 1)).problem).toContain("over 16384 bytes");
    expect(parse(`${OK}X: `.padEnd(HEAD_BYTES, "x")).state).toBe("head");
    expect(parse(`${OK}X: `.padEnd(HEAD_BYTES + 1, "x")).state).toBe("invalid");
  });

  test("count interim heads into the 16 KiB", () => {
    const interim = "HTTP/1.1 100 Continue\r\n\r\n";
    const fits = Math.floor((HEAD_BYTES - ANSWERS.empty.length) / interim.length);
    expect(parse(interim.repeat(fits) + ANSWERS.empty).state).toBe("complete");
    expect(parse(interim.repeat(fits + 1) + ANSWERS.empty).state).toBe("invalid");
  });

  test("read a body of 64 KiB to its end and cut one byte more, in each framing", () => {
    const framings = [
      (body: string) => `${OK}Content-Length: ${body.length}\r\n\r\n${body}`,
      (body: string) =>
        `${OK}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ];
    for (const frame of framings) {
      const whole = parse(frame("x".repeat(BODY_BYTES)));
      expect(verdict(whole)).toMatchObject({ state: "complete", isCut: false, isReusable: true });
      const over = parse(frame("x".repeat(BODY_BYTES + 1)));
      expect(verdict(over)).toMatchObject({ state: "complete", isCut: true, isReusable: false });
      expect(over.body.bytesRead).toBe(BODY_BYTES);
    }
    const open = parse(`${OK}\r\n`, "x".repeat(BODY_BYTES));
    expect(open.state).toBe("data");
    open.feed(Buffer.from("x"));
    expect(verdict(open)).toMatchObject({ state: "complete", isCut: true });
  });

  test("keep no more than the excerpt of a plain body in memory", () => {
    const parser = parse(
      `${OK}Content-Length: 60000\r\n\r\n`,
      ...splitAt("x".repeat(60000), 1, 4000, 5000),
    );
    expect(parser.body.bytes().length).toBe(EXCERPT_BYTES);
    expect(parser.body.bytesRead).toBe(60000);
  });

  test("take a chunk line of 1 KiB and refuse one byte more, ended or not", () => {
    expect(parse(`${chunkLine(MAX_CHUNK_LINE_BYTES)}\r\nx\r\n0\r\n\r\n`).state).toBe("complete");
    expect(parse(`${chunkLine(MAX_CHUNK_LINE_BYTES + 1)}\r\nx\r\n0\r\n\r\n`).state).toBe("invalid");
    expect(parse(chunkLine(MAX_CHUNK_LINE_BYTES + 3)).state).toBe("invalid");
  });

  test("take trailers of 16 KiB and refuse one byte more", () => {
    expect(parse(trailersOf(HEAD_BYTES)).state).toBe("complete");
    expect(parse(trailersOf(HEAD_BYTES + 1)).state).toBe("invalid");
  });
});

test("a repeated head reads as it did before, and another one as it says", () => {
  const read = (text: string) => {
    const parser = new ResponseParser();
    parser.feed(Buffer.from(text, "latin1"));
    return verdict(parser);
  };
  for (const [kind, text] of Object.entries(ANSWERS)) {
    const first = read(text);
    expect([kind, first]).toEqual([kind, verdict(parse(text))]);
    expect([kind, read(text)]).toEqual([kind, first]);
  }
  expect(read(`${OK}Bad line\r\n\r\n`).state).toBe("invalid");
  expect(read(`${OK}Bad line\r\n\r\n`).state).toBe("invalid");
  expect(read(ANSWERS.empty).state).toBe("complete");
});

const OK = "HTTP/1.1 200 OK\r\n";

/** The limits of contract 7.10. */
const HEAD_BYTES = 16_384;
const BODY_BYTES = 65_536;
const EXCERPT_BYTES = 4_096;

const MALFORMED = {
  "not HTTP": "SSH-2.0-OpenSSH_9.2\r\n\r\n",
  "HTTP/2": "HTTP/2 200\r\n\r\n",
  "HTTP/1.2": "HTTP/1.2 200 OK\r\n\r\n",
  "a blank line before the status": `\r\n${OK}\r\n`,
  "a status of two digits": "HTTP/1.1 20 OK\r\n\r\n",
  "a status of four digits": "HTTP/1.1 2000 OK\r\n\r\n",
  "a status of 000": "HTTP/1.1 000 OK\r\n\r\n",
  "two spaces before the status": "HTTP/1.1  200 OK\r\n\r\n",
  "a tab before the status": "HTTP/1.1\t200 OK\r\n\r\n",
  "bare LF throughout": "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
  "a bare LF between headers": `${OK}A: b\nC: d\r\n\r\n`,
  "a bare CR in a header": `${OK}A: b\rC: d\r\n\r\n`,
  "a NUL in a header": `${OK}A: b\0\r\n\r\n`,
  "a folded header": `${OK}A: b\r\n c\r\n\r\n`,
  "a space before the colon": `${OK}Content-Length : 2\r\n\r\nok`,
  "a header without a colon": `${OK}Content-Length 2\r\n\r\nok`,
  "a header without a name": `${OK}: 2\r\n\r\n`,
  "a name beyond ASCII": `${OK}N\u00e4me: 2\r\n\r\n`,
  "both Content-Length and Transfer-Encoding": `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "two equal lengths": `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`,
  "two different lengths": `${OK}Content-Length: 2\r\ncontent-length: 3\r\n\r\nok`,
  "a list of lengths": `${OK}Content-Length: 2, 2\r\n\r\nok`,
  "a negative length": `${OK}Content-Length: -1\r\n\r\n`,
  "a signed length": `${OK}Content-Length: +2\r\n\r\nok`,
  "a hexadecimal length": `${OK}Content-Length: 0x2\r\n\r\nok`,
  "an empty length": `${OK}Content-Length:\r\n\r\n`,
  "a huge length": `${OK}Content-Length: 9999999999999999\r\n\r\n`,
  "a length with a no-break space": `${OK}Content-Length: 2\u00a0\r\n\r\nok`,
  "an unknown transfer coding": `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  "chunked twice": `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "a disguised transfer coding": `${OK}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  "chunks in HTTP/1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "an unasked protocol switch": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
};

function parse(...pieces: (string | Buffer)[]): ResponseParser {
  const parser = new ResponseParser();
  for (const piece of pieces) parser.feed(Buffer.from(piece as string, "latin1"));
  return parser;
}

/** The result of a parse, equal for every way to split the same bytes. */
function verdict(parser: ResponseParser) {
  const { state, head, body, isReusable } = parser;
  const isCut = body.cut;
  return {
    state,
    status: head?.statusCode,
    body: body.bytes().toString("latin1"),
    isCut,
    isReusable,
  };
}

function splitAt(text: string, ...cuts: number[]): string[] {
  const edges = [0, ...cuts.toSorted((a, b) => a - b), text.length];
  return edges.slice(1).map((edge, index) => text.slice(edges[index], edge));
}

const ANSWERS = {
  length: `${OK}Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello`,
  empty: `${OK}Content-Length: 0\r\n\r\n`,
  no_content: "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
  no_reason: "HTTP/1.1 410\r\nContent-Length: 2\r\n\r\nno",
  chunked: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a="b"\r\n world\r\n0\r\n\r\n`,
  trailers: `${OK}transfer-encoding: CHUNKED\r\n\r\n00a \t;x\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n`,
  interim: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
  until_close: `${OK}Server: old\r\n\r\nno length at all`,
  close: `${OK}Connection: keep-alive, Close\r\nContent-Length: 2\r\n\r\nok`,
  http10: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
  excess: `${OK}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n`,
  excess_chunks: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n`,
  excess_no_content: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
};
