// Runs the commands of the guides unchanged, in an empty folder, against a running product.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { GUIDES } from "../../src/docs/pages.ts";
import { PASSWORD } from "../support/api.ts";
import { startProduct } from "../support/product.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";

test("every guide with blocks marked run is covered here", () => {
  const withBlocks = GUIDES.filter(({ name }) => script(name, 0) !== "");
  expect(RUNS.map(({ name }) => name).toSorted()).toEqual(
    withBlocks.map(({ name }) => name).toSorted(),
  );
});

const product = fixture(startProduct);

const owner = () => product.tenants.partners[0].owner.email;
const token = async () => ({ TOKEN: await product.api().login(owner()) });

const RUNS: readonly Run[] = [
  {
    name: "getting-started",
    typed: () => [owner(), PASSWORD],
    sees: [
      "Queued 01",
      /webhook\.test {2}01\w+ {2}attempt 1 {2}→ 204 in \d+ ms {2}signature valid/,
      "retry",
      '"request_body":"{',
      '"success_rate_24h":',
    ],
  },
  { name: "command", sees: ["Usage: reviewrelay"] },
  {
    name: "sign-in",
    typed: () => [owner(), PASSWORD],
    sees: ['"role":"partner_owner"', '"access_token":"', '"message"', "401"],
  },
  {
    name: "oauth",
    env: token,
    sees: ['"issuer":', '"kty":"RSA"', "{}", '"error":"unauthorized_client"', '{"active":false}'],
  },
  {
    name: "single-sign-on",
    env: async () => ({
      TOKEN: await product.api().login(product.tenants.superAdmin.email),
      COMPANY: String(product.tenants.partners[0].id),
    }),
    sees: [
      '"redirect_uri":"',
      '"client_id":"reviewrelay"',
      '"password_login":false',
      '"methods":["sso"]',
    ],
  },
  { name: "embedding", env: token, sees: ["/embed/", "#code=", '"expires_at":"'] },
  { name: "verifying", sees: [/sha256=[0-9a-f]{64}/] },
  {
    name: "review-sites",
    env: () => {
      const { slug, secret } = product.provider;
      return { SLUG: slug, SECRET: secret, SITE: String(product.siteId) };
    },
    sees: ['{"accepted":1,"duplicates":0}'],
  },
  { name: "recovery", env: token, sees: [/\d+ 01\w+ review_received/] },
  {
    name: "errors-and-limits",
    sees: ['"code":"unauthenticated"', '"code":"validation_failed"', '"password":['],
  },
];

test
  .skipIf(lacks("bash", "curl", "node", "openssl"))
  .each(RUNS.map((one) => [one.name, one] as const))(
  "%s runs unchanged",
  async (name, { env, typed, sees }) => {
    const folder = mkdtempSync(join(tmpdir(), "guide-"));
    const port = await freePort();
    // `-e` stops at errors, which a reader would notice; the trap ends background jobs with the shell.
    const trap = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
    const shell = Bun.spawn(
      ["bash", "--norc", "-e", "-o", "pipefail", "-c", `${trap}\n${script(name, port)}`],
      {
        cwd: folder,
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: folder,
          PORT: String(port),
          ...(await env?.()),
        },
        stdin: Buffer.from((typed?.() ?? []).map((line) => `${line}\n`).join("")),
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [out, err] = await Promise.all([
      new Response(shell.stdout).text(),
      new Response(shell.stderr).text(),
    ]);
    expect([await shell.exited, err]).toEqual([0, expect.any(String)]);
    let rest = out;
    for (const one of sees) {
      const at = typeof one === "string" ? rest.indexOf(one) : rest.search(one);
      expect([one, at >= 0, rest, err]).toEqual([one, true, rest, err]);
      rest = rest.slice(at);
    }
    rmSync(folder, { recursive: true, force: true });
  },
);

const FOLDER = join(import.meta.dir, "../../src/docs/guides");

interface Run {
  readonly name: string;
  /** Variables that the reader has from an earlier page. */
  readonly env?: () => Record<string, string> | Promise<Record<string, string>>;
  /** The lines that the reader types. */
  readonly typed?: () => readonly string[];
  /** The expected output, in this order. */
  readonly sees: readonly (string | RegExp)[];
}

function script(name: string, port: number): string {
  const blocks = readFileSync(join(FOLDER, `${name}.md`), "utf8").matchAll(
    /^ *```sh run\n([\s\S]*?)^ *```$/gm,
  );
  const text = [...blocks].map(([, block = ""]) => block).join("\n");
  return text.replaceAll("{{root}}", product.root).replaceAll("4000", String(port));
}
