import { describe, expect, test } from "bun:test";

import {
  formsOf,
  NameResolver,
  readHosts,
  readResolvConf,
  type Channel,
} from "../../../src/lib/name-resolver.ts";

describe("a look-up", () => {
  test("is shared by all callers that ask for the name while it runs, and by no later ones", async () => {
    const { look, answer, asked } = stage();
    const both = Promise.all([look("a.test"), look("a.test", { partnerId: 7 })]);
    await answer("a.test", ["8.8.8.8"]);
    expect(await both).toEqual(["8.8.8.8", "8.8.8.8"]);
    const next = look("a.test");
    await answer("a.test", ["9.9.9.9"]);
    expect(await next).toBe("9.9.9.9");
    expect(asked).toEqual(["a.test", "a.test"]);
  });

  test("is cancelled when its last caller leaves, and a later caller starts a new one", async () => {
    const { look, answer, asked, counts } = stage();
    const [one, other] = [new AbortController(), new AbortController()];
    const first = look("a.test", { signal: one.signal });
    const second = look("a.test", { signal: other.signal });
    one.abort();
    expect(counts().cancelled).toBe(0);
    other.abort();
    expect(counts().cancelled).toBe(1);
    const third = look("a.test");
    expect(await Promise.all([first, second])).toEqual([
      "DNS did not respond for a.test in time",
      "DNS did not respond for a.test in time",
    ]);
    await answer("a.test", ["8.8.8.8"]);
    expect(await third).toBe("8.8.8.8");
    expect(asked).toEqual(["a.test", "a.test"]);
  });

  test("is cancelled when DNS has been silent for too long", async () => {
    const { look, counts } = stage({ answerMs: 1 });
    expect(await look("a.test")).toBe("DNS did not respond for a.test in time");
    expect(counts().cancelled).toBe(1);
  });

  test("reuses an idle channel before it creates another", async () => {
    const { look, answer, counts } = stage();
    for (const name of ["a.test", "b.test"]) {
      const found = look(name);
      await answer(name, ["8.8.8.8"]);
      await found;
    }
    expect(counts().made).toBe(1);
    void look("c.test");
    void look("d.test");
    expect(counts().made).toBe(2);
  });

  test.each([
    ["ENOTFOUND", "a.test has no address"],
    ["ESERVFAIL", "DNS fails for a.test: ESERVFAIL"],
    ["ETIMEOUT", "DNS did not respond for a.test in time"],
  ])("that ended with %s is repeated after 3 s and not before", async (code, reason) => {
    const { look, answer, asked, pass } = stage();
    const first = look("a.test");
    await answer("a.test", code);
    expect(await first).toBe(reason);
    pass(2_999);
    expect(await look("a.test")).toBe(reason);
    expect(asked).toEqual(["a.test"]);
    pass(1);
    const second = look("a.test");
    await answer("a.test", ["8.8.8.8"]);
    expect(await second).toBe("8.8.8.8");
  });

  test("whose failure is remembered says when it began", async () => {
    const { resolver, answer, pass } = stage();
    pass(5);
    const first = resolver.lookup("a.test").catch((error: unknown) => error);
    pass(7);
    await answer("a.test", "ESERVFAIL");
    expect(await first).toMatchObject({ rememberedMs: undefined });
    expect(resolver.lookup("a.test")).rejects.toMatchObject({ rememberedMs: 5 });
  });

  test("that failed for a local reason is repeated at once", async () => {
    const { look, answer, asked } = stage();
    const first = look("a.test");
    await answer("a.test", "ECONNREFUSED");
    expect(await first).toBe("DNS fails for a.test: ECONNREFUSED");
    void look("a.test");
    expect(asked).toEqual(["a.test", "a.test"]);
  });
});

describe("concurrent look-ups", () => {
  const SHARE = 32;
  const ALL = 2_048;

  test(`are limited to ${SHARE} per partner, and the next one waits while those of others start`, async () => {
    const { look, answer, asked } = stage();
    const own = names(SHARE + 1).map((name) => look(name, { partnerId: 1 }));
    expect(asked).toEqual(names(SHARE));
    void look("other.test", { partnerId: 2 });
    void look("nobody.test");
    expect(asked.slice(SHARE)).toEqual(["other.test", "nobody.test"]);
    await answer("silent-0.test", ["8.8.8.8"]);
    expect(asked.at(-1)).toBe(`silent-${SHARE}.test`);
    expect(await own[0]).toBe("8.8.8.8");
  });

  test("that wait for a partner's share do not keep other partners from the same name", async () => {
    const { look, answer, asked } = stage();
    for (const name of names(SHARE)) void look(name, { partnerId: 1 });
    const waiting = look("wanted.test", { partnerId: 1 });
    const other = look("wanted.test", { partnerId: 2 });
    expect(asked.at(-1)).toBe("wanted.test");
    await answer("wanted.test", ["8.8.8.8"]);
    expect(await other).toBe("8.8.8.8");
    // It takes over the slot of another look-up.
    await answer("silent-0.test", ["8.8.8.8"]);
    await answer("wanted.test", ["9.9.9.9"]);
    expect(await waiting).toBe("9.9.9.9");
  });

  test(`are limited to ${ALL} in total, and the next one waits`, async () => {
    const { look, answer, asked } = stage();
    for (const name of names(ALL)) void look(name);
    expect(asked).toHaveLength(ALL);
    void look("next.test");
    expect(asked).toHaveLength(ALL);
    await answer("silent-5.test", "ENOTFOUND");
    expect(asked.at(-1)).toBe("next.test");
  });

  test(`may have ${ALL} more waiting, and the next one is rejected`, async () => {
    const { look, asked } = stage();
    for (const name of names(ALL, "running")) void look(name);
    for (const name of names(ALL, "waiting")) void look(name);
    expect(await look("refused.test")).toBe("too many DNS look-ups are waiting");
    expect(asked).toHaveLength(ALL);
  });

  test("are not started for a caller that left while it waited", async () => {
    const { look, answer, asked } = stage();
    for (const name of names(SHARE)) void look(name, { partnerId: 1 });
    const caller = new AbortController();
    const late = look("late.test", { partnerId: 1, signal: caller.signal });
    caller.abort();
    await answer("silent-0.test", ["8.8.8.8"]);
    expect(await late).toBe("the DNS look-up did not start in time");
    expect(asked).not.toContain("late.test");
  });
});

describe("resolv.conf", () => {
  test.each([
    ["", [], 1],
    [
      "nameserver 10.0.0.10\nsearch a.test b.test.\noptions timeout:1 ndots:5",
      ["a.test", "b.test"],
      5,
    ],
    ["domain a.test\nsearch b.test # office\n", ["b.test"], 1],
    ["search .\n; search c.test\noptions ndots:x", [], 1],
  ])("%j has the search domains %j with ndots %j", (text, search, ndots) => {
    expect(readResolvConf(text)).toEqual({ search, ndots });
  });

  test.each([
    ["hook", 1, ["hook.a.test", "hook.b.test", "hook"]],
    ["hook.svc", 1, ["hook.svc", "hook.svc.a.test", "hook.svc.b.test"]],
    ["hook.svc", 5, ["hook.svc.a.test", "hook.svc.b.test", "hook.svc"]],
  ])("queries %s with ndots %i as %j", (host, ndots, forms) => {
    expect(formsOf(host, { search: ["a.test", "b.test"], ndots })).toEqual(forms);
  });
});

describe("a hosts file", () => {
  test("gives a name the addresses of all its lines, each once, and skips invalid addresses", () => {
    const text = [
      "127.0.0.1 localhost Localhost # ours",
      "::1\tlocalhost ip6-localhost",
      "# 10.0.0.1 commented.test",
      "10.0.0.2",
      "somewhere wrong.test",
    ].join("\n");
    expect(Object.fromEntries(readHosts(text))).toEqual({
      localhost: ["127.0.0.1", "::1"],
      "ip6-localhost": ["::1"],
    });
  });
});

/** The answer of c-ares for both families, or an error code; a promise that never ends stands for silence. */
type Answer = string[] | string;

/**
 * A resolver; the test decides when a query is answered. `asked` lists the names in order, both families as one.
 */
function stage({ answerMs }: { answerMs?: number } = {}) {
  const asked: string[] = [];
  const open = new Map<string, (answer: Answer) => void>();
  let cancelled = 0;
  let nowMs = 0;
  let made = 0;
  const newChannel = (): Channel => {
    made += 1;
    const pending = new Set<(answer: Answer) => void>();
    const ask = (name: string) =>
      new Promise<string[]>((resolve, reject) => {
        const settle = (answer: Answer) => {
          pending.delete(settle);
          if (typeof answer === "string")
            reject(Object.assign(new Error(answer), { code: answer }));
          else resolve(answer);
        };
        pending.add(settle);
        open.set(name, settle);
      });
    return {
      resolve4: ((name: string) => {
        asked.push(name);
        return ask(name);
      }) as Channel["resolve4"],
      resolve6: async () => {
        throw Object.assign(new Error("none"), { code: "ENODATA" });
      },
      cancel() {
        cancelled += 1;
        for (const settle of pending) settle("ECANCELLED");
      },
    };
  };
  const resolver = new NameResolver({
    hostsFile: "",
    resolvFile: "",
    newChannel,
    monotonicMs: () => nowMs,
    ...(answerMs !== undefined && { answerMs }),
  });
  return {
    resolver,
    asked,
    counts: () => ({ cancelled, made }),
    pass: (ms: number) => void (nowMs += ms),
    answer: async (name: string, answer: Answer) => {
      open.get(name)?.(answer);
      await settled();
    },
    /** Starts a look-up; resolves to its addresses or its error as text. */
    look: (host: string, options?: Parameters<typeof resolver.lookup>[1]) =>
      resolver.lookup(host, options).then(
        (addresses) => addresses.join(" "),
        (error: Error) => error.message,
      ),
  };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

const names = (count: number, prefix = "silent") =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}.test`);
