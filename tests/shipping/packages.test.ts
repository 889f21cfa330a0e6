// Builds the packages as they are published, installs them into an empty folder, and runs the blocks of their README.md
// against the product: a receiver, the client, and a sign-in by OAuth.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { PASSWORD } from "../support/api.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { buildTypescriptPackage } from "../../scripts/packages.ts";
import { lacks } from "../support/needs.ts";
import { fixture } from "../support/fixture.ts";
import { until } from "../support/network/receiver.ts";
import { addClient, credentialsOf, postForm } from "../support/oauth.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { pipFor, pythonWith } from "../support/processes/python.ts";
import { startProduct } from "../support/product.ts";
import { isThorough } from "../support/thorough.ts";

const SDK = join(import.meta.dir, "../../src/sdk");

const product = fixture(startProduct);
let work: string;
let token: string;
beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), "packages-"));
  token = await product.api().login(product.tenants.partners[0].owner.email);
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

for (const { name, needs, install } of packages()) {
  test.skipIf(lacks(...needs))(
    `the package of src/sdk/${name} is built with all its files, and the blocks of its README.md run unchanged`,
    async () => {
      const folder = mkdtempSync(join(work, `${name}-`));
      const blocks = [
        ...readFileSync(join(SDK, name, "README.md"), "utf8").matchAll(
          /^```\w+ run \S+\n([\s\S]*?)^```$/gm,
        ),
      ].map(([, block = ""]) => block);
      const { files, commands } = await install(folder, blocks);
      for (const file of filesOf(name))
        expect([`${name}: ${file}`, existsSync(join(files, file))]).toEqual([
          `${name}: ${file}`,
          true,
        ]);
      const [receive = [], call, signIn] = commands;
      const port = await freePort();
      await withoutSubscriptions();
      const secret = call === undefined ? await subscribed(port) : await called(folder, call, port);
      await receives(folder, { command: receive, port, secret });
      if (signIn !== undefined) await signsIn(folder, signIn);
    },
  );
}

/** Files that no code of the package imports. */
const MARKERS: Readonly<Record<string, readonly string[]>> = {
  python: ["reviewrelay/py.typed"],
  go: ["go.mod"],
};

/** Returns the files that an installed package must have, one for each of its sources. */
function filesOf(name: string): string[] {
  const sources = readdirSync(join(SDK, name), { recursive: true, encoding: "utf8" });
  const files = sources.flatMap((file) => {
    const [, module] = /^src\/(\w+)\.ts$/.exec(file) ?? [];
    // The module of the types has no code.
    if (module === "api") return ["dist/api.d.ts"];
    if (module !== undefined) return [`dist/${module}.js`, `dist/${module}.d.ts`];
    return /\.(?:go|php|py)$/.test(file) ? [file] : [];
  });
  return [...files, ...(MARKERS[name] ?? [])];
}

/** Runs the block that calls the API, and returns the secret that it prints. */
async function called(folder: string, command: readonly string[], port: number): Promise<string> {
  await product.emit(2);
  const printed = await output(command, folder, {
    REVIEWRELAY_SERVER: product.root,
    REVIEWRELAY_TOKEN: token,
    WEBHOOK_URL: `http://127.0.0.1:${port}/`,
  });
  const [first = "", ...rest] = printed.split("\n");
  expect(rest.at(-1)).toMatch(/^404 not_found (?:true|True)$/);
  const ids = rest.slice(0, -1);
  expect([ids.length >= 2, new Set(ids).size]).toEqual([true, ids.length]);
  return first.replace("WEBHOOK_SECRETS=", "");
}

async function subscribed(port: number): Promise<string> {
  const { body } = await product.api().call("POST", "/partner/webhooks", {
    token,
    body: {
      label: "A receiver",
      webhook_url: `http://127.0.0.1:${port}/`,
      delivery_kind: "immediate",
    },
  });
  return String(body["secret"]);
}

async function withoutSubscriptions(): Promise<void> {
  const { body } = await product.api().call("GET", "/partner/webhooks", { token });
  for (const { id } of body["data"] as { id: string }[])
    await product.api().call("DELETE", `/partner/webhooks/${id}`, { token });
}

/** Runs the receiver, which prints the rating and the id of a delivered review and refuses a forged one. */
async function receives(
  folder: string,
  { command, port, secret }: { command: readonly string[]; port: number; secret: string },
): Promise<void> {
  const child = Bun.spawn(
    command.map((one) => one.replace("PORT", String(port))),
    {
      cwd: folder,
      env: { ...environment(folder), WEBHOOK_SECRETS: secret, PORT: String(port) },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  let printed = "";
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const part of stream) printed += new TextDecoder().decode(part);
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  try {
    const forged = () => fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" });
    await until("a receiver that refuses", async () => {
      if (child.exitCode !== null) throw new Error(`The receiver has ended: ${printed}`);
      const answer = await forged().catch(() => undefined);
      return answer?.status === 401;
    });
    await product.emit(1);
    await until("a printed review", () => /\d 01[0-9A-Z]{24}/.test(printed));
  } finally {
    child.kill();
    await child.exited;
    await reading;
  }
}

async function signsIn(folder: string, command: readonly string[]): Promise<void> {
  const client = await addClient(product.database.db, { firstParty: true });
  const { body } = await postForm(product.api(), "/oauth/token", {
    grant_type: "password",
    username: product.tenants.partners[0].owner.email,
    password: PASSWORD,
    ...credentialsOf(client),
  });
  const first = String(body["refresh_token"]);
  written(folder, "refresh-token", first);
  const given = {
    REVIEWRELAY_SERVER: product.root,
    CLIENT_ID: client.clientId,
    CLIENT_SECRET: client.secret,
  };
  // The second run uses the token that the first one stored.
  for (let run = 0; run < 2; run += 1)
    expect(await output(command, folder, given)).toBe("partner_owner");
  expect(readFileSync(join(folder, "refresh-token"), "utf8")).not.toBe(first);
}

const GO_MODULE = `module receiver

go 1.22

require reviewrelay v0.0.0

replace reviewrelay => ./reviewrelay
`;

const environment = (folder: string) => ({
  ...process.env,
  ...GO_ENV,
  PYTHONPATH: join(folder, "source"),
  PYTHONUNBUFFERED: "1",
  COMPOSER_ALLOW_SUPERUSER: "1",
});

/** Returns the output of a command; throws with all that it printed if it fails. */
async function output(
  command: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd, env: { ...environment(cwd), ...env }, stdout: "pipe", stderr: "pipe" };
  const child = Bun.spawn([...command], options as { stdout: "pipe"; stderr: "pipe" });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${out}${err}`);
  return out.trim();
}

function written(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

interface Package {
  readonly name: string;
  readonly needs: readonly NeedName[];
  /**
   * Builds and installs the package into an empty project with the blocks of the README; returns the folder of its files
   * and the command that runs each block.
   */
  install(
    folder: string,
    blocks: readonly string[],
  ): Promise<{ files: string; commands: readonly (readonly string[])[] }>;
}

/** Calls that the types of the published package refuse. An accepted call is an error of the compiler. */
const WRONG_CALLS = `import { ReviewRelay } from "@reviewrelay/sdk";

export async function call(relay: ReviewRelay, id: string): Promise<void> {
  // @ts-expect-error An unknown path.
  await relay.request("GET /partner/webhook");
  // @ts-expect-error Another method.
  await relay.request("PUT /partner/webhooks");
  // @ts-expect-error Without the id in the path.
  await relay.request("GET /partner/webhooks/{id}");
  // @ts-expect-error Without a required field.
  await relay.request("POST /partner/webhooks", { body: { label: "A label" } });
  // @ts-expect-error A key of an operation that creates nothing, and would be carried out again.
  await relay.request("POST /partner/webhooks/{id}/test", { path: { id }, idempotencyKey: "1" });
  // @ts-expect-error An unknown parameter.
  relay.pages("GET /partner/webhooks", { query: { offset: 1 } });
  // @ts-expect-error No list.
  relay.pages("GET /partner/webhooks/{id}", { path: { id } });
  // @ts-expect-error A stream, which is for \`open\` only.
  await relay.request("GET /partner/webhooks/{id}/stream", { path: { id } });
  // Its options may be left out.
  await relay.open("GET /partner/audit-log/export");
}
`;

/** The packages, each with the steps that build and install it. */
function packages(): readonly Package[] {
  return [
    {
      name: "typescript",
      needs: ["node"],
      async install(folder, blocks) {
        const source = join(folder, "source");
        buildTypescriptPackage(source);
        const [types, tsc] = ["@types", ".bin/tsc"].map((one) => join(source, "node_modules", one));
        const packed = await output(["npm", "pack", "--silent"], source);
        await output(["npm", "init", "-y"], folder);
        await output(["npm", "install", "--silent", "--offline", join(source, packed)], folder);
        const files = blocks.map((block, i) => written(folder, `block${i}.mts`, block));
        const options = ["--module", "nodenext", "--target", "es2022", "--strict"];
        files.push(written(folder, "wrong.mts", WRONG_CALLS));
        const check = [...options, "--types", "node", "--typeRoots", types ?? "", ...files];
        await output([process.execPath, "--bun", tsc ?? "", ...check], folder);
        return {
          files: join(folder, "node_modules/@reviewrelay/sdk"),
          commands: blocks.map((_, i) => ["node", `block${i}.mjs`]),
        };
      },
    },
    {
      name: "python",
      needs: ["python"],
      async install(folder, blocks) {
        // Python finds the package in this folder.
        const installed = join(folder, "source");
        const python = pythonWith("package", [
          "setuptools==80.9.0",
          ...(isThorough ? ["mypy==1.19.0"] : []),
        ]);
        if (python === undefined) throw new Error("There is no registry with setuptools.");
        const source = join(folder, "python");
        cpSync(join(SDK, "python"), source, { recursive: true });
        if (isThorough) await output([python, "-m", "mypy", "--strict", "reviewrelay"], source);
        const options = ["-q", "--no-build-isolation", "--no-deps", "--target", installed];
        await output([...pipFor(python), "install", ...options, source], folder);
        const files = blocks.map((block, i) => written(folder, `block${i}.py`, block));
        return { files: installed, commands: files.map((file) => ["python3", file]) };
      },
    },
    {
      name: "php",
      needs: ["php", "composer"],
      async install(folder, blocks) {
        // As the README says: a copy of the folder, as a repository of the type `path`.
        cpSync(join(SDK, "php"), join(folder, "reviewrelay"), { recursive: true });
        const repositories = [
          { type: "path", url: "reviewrelay", options: { symlink: false } },
          { "packagist.org": false },
        ];
        written(folder, "composer.json", JSON.stringify({ repositories }));
        await output(["composer", "require", "--quiet", "reviewrelay/sdk:*@dev"], folder);
        written(folder, "index.php", blocks[0] ?? "");
        return {
          files: join(folder, "vendor/reviewrelay/sdk"),
          commands: [["php", "-S", "127.0.0.1:PORT", "index.php"]],
        };
      },
    },
    {
      name: "go",
      needs: ["go"],
      async install(folder, blocks) {
        const files = join(folder, "reviewrelay");
        cpSync(join(SDK, "go"), files, { recursive: true });
        written(folder, "main.go", blocks[0] ?? "");
        written(folder, "go.mod", GO_MODULE);
        await output(["go", "build", "-o", "receiver", "."], folder);
        return { files, commands: [[join(folder, "receiver")]] };
      },
    },
  ];
}
