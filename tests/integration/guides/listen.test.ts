import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { vectorFiles, type Vector } from "../../../scripts/vectors.ts";
import { until } from "../../support/network/receiver.ts";

describe("bun run listen", () => {
  test("shows a delivery and a valid signature", async () => {
    const { output, post } = await listen(["--secret", good.secret]);
    expect((await post(good)).status).toBe(200);
    await until("the body", () => output.text.includes('"rate": 2'));
    expect(output.text).toContain(
      "review_received  delivery 01JWNB9PR0ZV8X2D3F4G5H6J00  attempt 1",
    );
    expect(output.text).toContain("x-svc-signature: valid");
    expect(output.text).not.toContain(good.secret);
  });

  test("reports a wrong signature, a missing one, and a duplicate delivery", async () => {
    const { output, post } = await listen(["--plain"], { WEBHOOK_SECRET: good.secret });
    await post(vector("changed-byte"));
    await until("the first", () => output.text.includes("x-svc-signature: NOT VALID"));
    await post(vector("missing-header"));
    await until("the second", () => output.text.includes("x-svc-signature: MISSING"));
    expect(output.text).toContain("SEEN BEFORE: received 2 times");
    expect(output.text).toContain(good.body);
  });

  test("also checks the signature of the former secret", async () => {
    const grace = vector("grace-new-secret");
    const { output, post } = await listen(["--secret", grace.secret]);
    await post(grace);
    await until("both", () => output.text.includes("x-svc-signature-previous: NOT VALID"));
    expect(output.text).toContain("x-svc-signature: valid");
  });

  test("fails the requested number of times, then answers the requested status", async () => {
    const { post } = await listen(["--fail", "2", "--status", "204"]);
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await post(good)).status);
    expect(statuses).toEqual([500, 500, 204]);
  });

  test("hangs on request", async () => {
    const { output, post } = await listen(["--hang"]);
    const give = new AbortController();
    const answer = post(good, give.signal).then(
      () => "answered",
      () => "given up",
    );
    await until("the delivery is shown", () => output.text.includes("no answer"));
    give.abort();
    expect(await answer).toBe("given up");
  });

  test.each([
    ["--status", "199"],
    ["--status", "600"],
    ["--port", "65536"],
    ["--slow", "1.5"],
    ["--nonsense", "1"],
  ])("rejects %s %s", async (flag, value) => {
    const child = Bun.spawn([process.execPath, "scripts/listen.ts", flag, value], {
      cwd: ROOT,
      stderr: "pipe",
    });
    expect(await child.exited).toBe(64);
    expect(await new Response(child.stderr).text()).toContain(flag);
  });
});

const ROOT = join(import.meta.dir, "../../..");

const running: { kill(): void; exited: Promise<number> }[] = [];

afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill();
    await child.exited;
  }
});

const vectors = [...vectorFiles().values()].map((text): Vector => JSON.parse(text));

function vector(name: string): Vector {
  const found = vectors.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no vector ${name}.`);
  return found;
}

const good = vector("review_received-full");

async function listen(args: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, "scripts/listen.ts", "--port", "0", ...args], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  running.push(child);
  const output = { text: "" };
  void (async () => {
    for await (const chunk of child.stdout) output.text += new TextDecoder().decode(chunk);
  })();
  await until("the receiver listens", () => output.text.includes("Listening on"));
  const url = /Listening on (\S+?);/.exec(output.text)?.[1] ?? "";
  const post = (one: Vector, signal?: AbortSignal) =>
    fetch(`${url}hook`, {
      method: "POST",
      headers: one.headers,
      body: one.body,
      ...(signal && { signal }),
    });
  return { output, post };
}
