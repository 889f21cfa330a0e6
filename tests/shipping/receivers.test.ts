// The receivers of the guide "Receiving", unchanged, in every language that this machine has.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ulid } from "ulid";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { runCommand } from "../support/processes/command.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { until } from "../support/network/receiver.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { lacks } from "../support/needs.ts";

/** Timeout of a test. The first compilation of Go's HTTP server takes a while. */
const PATIENCE_MS = 180_000;

const LANGUAGES: readonly Language[] = [
  { name: "JavaScript", needs: "node", start: () => ["node", "receive.mjs"] },
  { name: "Python", needs: "python", start: () => ["python3", "receive.py"] },
  {
    name: "PHP",
    needs: "php",
    start: (port) => ["php", "-S", `127.0.0.1:${port}`, "receive.php"],
  },
  { name: "Ruby", needs: "ruby", start: () => ["ruby", "-e", RUBY] },
  {
    name: "Go",
    needs: "go",
    build: ["go", "build", "-o", "receive-go", "receive.go", "verify.go"],
    start: () => ["./receive-go"],
  },
  {
    name: "Java",
    needs: "java",
    build: ["javac", "Verify.java", "Receive.java"],
    start: () => ["java", "Receive"],
  },
];

for (const { name, needs, build, start } of LANGUAGES) {
  const title = `the receiver in ${name} takes what is signed and fresh, once, needs a secret, and passes the check`;
  test.skipIf(lacks(needs))(
    title,
    async () => {
      const port = await freePort();
      const env = {
        PATH: process.env["PATH"] ?? "",
        HOME: process.env["HOME"] ?? folder,
        ...GO_ENV,
        TMPDIR: folder,
        PORT: String(port),
      };
      const run = async (command: readonly string[], more: Record<string, string> = {}) => {
        const child = Bun.spawn([...command], {
          cwd: folder,
          env: { ...env, ...more },
          stdout: "ignore",
          stderr: "pipe",
        });
        const said = await new Response(child.stderr).text();
        return [await child.exited, said];
      };
      if (build !== undefined) expect(await run(build)).toEqual([0, ""]);
      // A receiver must not start with an empty key, because anybody could sign with it. PHP's has a test of its own.
      if (name !== "PHP")
        for (const more of [{}, { WEBHOOK_SECRET: "" }])
          expect(await run(start(port), more)).toEqual([1, expect.stringContaining(SAYS)]);
      const child = Bun.spawn([...start(port)], {
        cwd: folder,
        env: { ...env, WEBHOOK_SECRET: SECRET },
        stdout: "ignore",
        stderr: "ignore",
      });
      try {
        const post = async (body: string, headers: Record<string, string>) =>
          (await fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body, headers })).status;
        await until("it listens", () =>
          post("", {}).then(
            () => true,
            () => false,
          ),
        );
        const now = new Date();
        const [body, minimal] = [bodyOf(now), bodyOf(undefined)];
        const old = bodyOf(new Date(now.getTime() - 600_000));
        const statuses = [
          await post(body, { "X-SVC-Signature": signed(body) }),
          await post(body, { "X-SVC-Signature": signed(body) }),
          await post(minimal, {
            "X-SVC-Signature": signed(minimal, "another"),
            "X-SVC-Signature-Previous": signed(minimal),
          }),
          await post(`${body} `, { "X-SVC-Signature": signed(body) }),
          await post(body, {}),
          await post(old, { "X-SVC-Signature": signed(old) }),
        ];
        expect(statuses).toEqual([204, 200, 204, 401, 401, 401]);
        const check = ["src/cli/main.ts", "check", `http://127.0.0.1:${port}/hook`];
        const checked = await runCommand(check, { WEBHOOK_SECRET: SECRET });
        expect(checked).toEqual({ status: 0, said: expect.stringContaining("ok") });
      } finally {
        child.kill();
        await child.exited;
      }
    },
    PATIENCE_MS,
  );
}

test.skipIf(lacks("php"))("the receiver in PHP accepts nothing with an empty key", async () => {
  const port = await freePort();
  const child = Bun.spawn(["php", "-S", `127.0.0.1:${port}`, "receive.php"], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", TMPDIR: folder, WEBHOOK_SECRET: "" },
    stdout: "ignore",
    stderr: "ignore",
  });
  try {
    const body = bodyOf(new Date());
    const headers = { "X-SVC-Signature": signed(body, "") };
    const post = () => fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body, headers });
    await until("it listens", () =>
      post().then(
        () => true,
        () => false,
      ),
    );
    expect((await post()).status).toBe(500);
  } finally {
    child.kill();
    await child.exited;
  }
});

/** A minimal Rack server, because Ruby comes without one. */
const RUBY = `
require "socket"
require "stringio"
def run(app) = $app = app
load "receive.ru"
server = TCPServer.new("127.0.0.1", ENV.fetch("PORT"))
loop do
  socket = server.accept
  socket.gets
  env = {}
  while (line = socket.gets.chomp) != ""
    name, value = line.split(": ", 2)
    env["HTTP_" + name.upcase.tr("-", "_")] = value
  end
  env["rack.input"] = StringIO.new(socket.read(env.fetch("HTTP_CONTENT_LENGTH", "0").to_i))
  socket.write("HTTP/1.1 #{$app.call(env)[0]} x\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
  socket.close
end
`;

const SAYS = "Set WEBHOOK_SECRET to the subscription's secret.";
const SECRET = "0123456789abcdef".repeat(4);

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "receivers-"));
  cpSync(join(import.meta.dir, "../../src/docs/verify"), folder, { recursive: true });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Language {
  readonly name: string;
  readonly needs: NeedName;
  /** Command that builds the receiver before it starts. */
  readonly build?: readonly string[];
  readonly start: (port: number) => readonly string[];
}

function signed(body: string, secret = SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

function bodyOf(deliveredAt: Date | undefined): string {
  const delivered = deliveredAt && deliveredAt.toISOString().replace("Z", "+00:00");
  return JSON.stringify({
    event: "review_received",
    event_id: ulid(),
    ...(delivered !== undefined && { delivered_at: delivered }),
  });
}
