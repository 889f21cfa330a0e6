import { describe, expect, test } from "bun:test";

import { BODY_LIMIT, LARGE_BODY, RequestBodies } from "../../../src/http/body.ts";
import { Problem } from "../../../src/lib/problem.ts";

test("large bodies are returned one per turn of the event loop, so that other requests run in between", async () => {
  expect(await turnsOf(LARGE_BODY)).toBe(20);
  expect(await turnsOf(LARGE_BODY - 1)).toBeLessThan(20);
});

describe("bodies", () => {
  /** Bodies that arrive as the test sends them; `answers` contains the result of each by its name. */
  function stage() {
    const bodies = new RequestBodies(100);
    const answers: Record<string, unknown> = {};
    const releases: Record<string, () => void> = {};
    const settle = () => new Promise((resolve) => setTimeout(resolve, 1));
    return {
      answers,
      release: (name: string) => releases[name]?.(),
      begin(name: string, from: string, options: { isDiscarded?: boolean; length?: number } = {}) {
        const { length, ...reading } = options;
        let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
        const body = new ReadableStream<Uint8Array>({ start: (opened) => void (sink = opened) });
        const headers = length === undefined ? {} : { "Content-Length": String(length) };
        const request = new Request("http://api.test/", { method: "POST", headers, body });
        bodies.read(request, { from, limit: 80, ...reading }).then(
          ({ bytes, release }) => {
            answers[name] = bytes.byteLength;
            releases[name] = release;
          },
          (error: unknown) => (answers[name] = error instanceof Problem ? error.code : error),
        );
        return {
          async send(bytes: number) {
            sink?.enqueue(new Uint8Array(bytes));
            await settle();
          },
          async end() {
            sink?.close();
            await settle();
          },
        };
      },
    };
  }

  test("are held up to the limit; beyond it the newest body of the network with the most bytes is rejected", async () => {
    const { begin, answers } = stage();
    const first = begin("first", "192.0.2.1");
    await first.send(40);
    const second = begin("second", "192.0.2.1");
    await second.send(30);
    const other = begin("other", "198.51.100.1");
    await other.send(30);
    expect(answers).toEqual({});
    await other.send(1);
    expect(answers).toEqual({ second: "overloaded" });
    await first.end();
    await other.end();
    expect(answers).toEqual({ second: "overloaded", first: 40, other: 31 });
  });

  test("from one /48 count as those of one network", async () => {
    const { begin, answers } = stage();
    for (let i = 0; i < 5; i++) await begin(`${i}`, `2001:db8:0:${i}00::1`).send(20);
    await begin("other", "192.0.2.1").send(30);
    expect(answers).toEqual({ 3: "overloaded", 4: "overloaded" });
  });

  test("are rejected themselves if their own network holds the most", async () => {
    const { begin, answers } = stage();
    await begin("other", "192.0.2.1").send(30);
    await begin("first", "198.51.100.1").send(60);
    await begin("second", "198.51.100.1").send(20);
    expect(answers).toEqual({ second: "overloaded" });
  });

  test("count until they are released, and are not rejected once they are read", async () => {
    const { begin, answers, release } = stage();
    const whole = begin("whole", "192.0.2.1");
    await whole.send(80);
    await whole.end();
    expect(answers).toEqual({ whole: 80 });
    await begin("second", "192.0.2.1").send(21);
    expect(answers).toEqual({ whole: 80, second: "overloaded" });
    release("whole");
    await begin("third", "192.0.2.1").send(80);
    await begin("fourth", "192.0.2.1").send(20);
    expect(answers).toEqual({ whole: 80, second: "overloaded" });
  });

  test("have room again after bodies that were too large", async () => {
    const { begin, answers } = stage();
    for (let i = 0; i < 5; i++) await begin(`large ${i}`, "192.0.2.1").send(81);
    expect(Object.values(answers)).toEqual(Array.from({ length: 5 }, () => "payload_too_large"));
    await begin("one", "192.0.2.1").send(80);
    await begin("two", "192.0.2.1").send(20);
    expect(answers).not.toHaveProperty("one");
    expect(answers).not.toHaveProperty("two");
  });

  test("count with their declared size from the beginning if it is small", async () => {
    const { begin, answers, release } = stage();
    const first = begin("first", "192.0.2.1", { length: 60 });
    begin("second", "192.0.2.1", { length: 40 });
    await begin("third", "192.0.2.1", { length: 1 }).send(0);
    expect(answers).toEqual({ third: "overloaded" });
    const other = begin("other", "198.51.100.1", { length: 40 });
    await other.send(40);
    await other.end();
    await first.send(60);
    await first.end();
    expect(answers).toEqual({ third: "overloaded", second: "overloaded", other: 40, first: 60 });
    release("first");
    await begin("fourth", "192.0.2.1", { length: 60 }).send(30);
    expect(answers).not.toHaveProperty("fourth");
  });

  test("that no one will verify are only measured, and not read if their size is declared", async () => {
    const { begin, answers } = stage();
    begin("declared", "192.0.2.1", { isDiscarded: true, length: 80 });
    begin("too large", "192.0.2.1", { isDiscarded: true, length: 81 });
    const chunked = begin("chunked", "192.0.2.1", { isDiscarded: true });
    await chunked.send(80);
    expect(answers).toEqual({ declared: 0, "too large": "payload_too_large" });
    await begin("beside", "192.0.2.1").send(80);
    await chunked.end();
    const larger = begin("larger", "192.0.2.1", { isDiscarded: true });
    await larger.send(81);
    expect(answers).toEqual({
      declared: 0,
      "too large": "payload_too_large",
      chunked: 0,
      larger: "payload_too_large",
    });
  });
});

/** Counts the turns of the event loop in which twenty concurrent bodies were returned. */
async function turnsOf(bytes: number): Promise<number> {
  const bodies = new RequestBodies();
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const read = Array.from({ length: 20 }, async () => {
    const text = "x".repeat(bytes);
    const request = new Request("http://api.test/", { method: "POST", body: text });
    const body = await bodies.read(request, { from: "192.0.2.1", limit: BODY_LIMIT });
    expect(body.bytes).toHaveLength(bytes);
    return turn;
  });
  const turns = await Promise.all(read);
  isOver = true;
  return new Set(turns).size;
}

describe("work on large bodies", () => {
  const MIB = 2 ** 20;
  const bodies = () => new RequestBodies(12 * MIB);
  const read = (from: RequestBodies, bytes: number) =>
    from.read(new Request("http://api.test/", { method: "POST", body: new Uint8Array(bytes) }), {
      from: "192.0.2.1",
      limit: MIB,
    });

  async function begin(from: RequestBodies, count: number) {
    const begun: number[] = [];
    const refused: number[] = [];
    const all = await Promise.all(Array.from({ length: count }, () => read(from, MIB)));
    all.forEach((body, n) =>
      body.begin().then(
        () => begun.push(n),
        () => refused.push(n),
      ),
    );
    await Bun.sleep(0);
    return { all, begun, refused };
  }

  test("begins in its turn, once others of fewer than 8 MiB are worked on", async () => {
    const { all, begun } = await begin(bodies(), 10);
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    all[3]?.release();
    all[3]?.release();
    await Bun.sleep(0);
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("keeps no small body waiting", async () => {
    const from = bodies();
    await begin(from, 10);
    const small = await read(from, LARGE_BODY - 1);
    await small.begin();
  });

  test("counts no body that is released while it waits", async () => {
    const { all, begun } = await begin(bodies(), 10);
    all[8]?.release();
    all[0]?.release();
    await Bun.sleep(0);
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 9]);
  });

  test("is refused to the newest body that waits, before bodies of other networks are", async () => {
    const from = bodies();
    const { begun, refused } = await begin(from, 12);
    expect(begun).toHaveLength(8);
    for (let n = 0; n < 8; n++) await read(from, MIB);
    expect(refused).toEqual([]);
    await from.read(new Request("http://api.test/", { method: "POST", body: "x" }), {
      from: "198.51.100.1",
      limit: MIB,
    });
    expect(refused).toEqual([11]);
  });
});
