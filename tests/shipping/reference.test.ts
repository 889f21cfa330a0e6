import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { buildTypescriptPackage } from "../../scripts/packages.ts";
import { REFERENCE_PATHS } from "../../src/docs/reference/page.ts";
import { LANGUAGES } from "../../src/docs/reference/samples.ts";
import { fixture } from "../support/fixture.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { startProduct } from "../support/product.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { lacks } from "../support/needs.ts";

const product = fixture(startProduct);
/** Samples by language, then by operation. */
const samples = new Map<string, Map<string, string>>();
let work: string;
let token: string;

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), "reference-"));
  token = await product.api().login(product.tenants.partners[0].owner.email);
  for (const path of REFERENCE_PATHS) {
    const html = await (await fetch(product.root + path)).text();
    for (const [name, language, text] of samplesIn(html)) {
      const known = samples.get(language) ?? new Map<string, string>();
      samples.set(language, known.set(name, text));
    }
  }
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

test("the reference has every operation with its samples, in at most 200 kB compressed", async () => {
  const { paths } = fieldsOf(await (await fetch(`${product.root}/openapi.json`)).json());
  const names = Object.values(fieldsOf(paths))
    .flatMap((item) => Object.values(fieldsOf(item)))
    .map((one) => String(fieldsOf(one)["operationId"]))
    .filter((name) => !name.endsWith("ByPatch"));
  expect(names.length).toBeGreaterThan(200);
  for (const language of LANGUAGES.map(({ id }) => id))
    expect([...(samples.get(language)?.keys() ?? [])].toSorted()).toEqual(names.toSorted());
  const files = ["/docs/docs.css", "/docs/docs.js", "/docs/search.json"];
  let bytes = 0;
  for (const path of [...REFERENCE_PATHS, ...files]) {
    const answer = await fetch(product.root + path, {
      headers: { "Accept-Encoding": "br" },
      decompress: false,
    });
    bytes += (await answer.arrayBuffer()).byteLength;
  }
  if (process.env["WEIGHTS"] === "1") console.log(`The reference takes ${bytes} bytes.`);
  expect(bytes).toBeLessThan(200_000);
});

const CHECKS: readonly Check[] = [
  // The check of types proves that the package has the operations of the samples, and takes what they give.
  {
    language: "typescript",
    ending: "ts",
    needs: [],
    check: ["bun", "--bun", "TSC", "-p", "."],
    run: ["bun"],
  },
  {
    language: "python",
    ending: "py",
    needs: ["python"],
    check: ["python3", "-m", "compileall", "-q", "."],
    run: ["python3"],
  },
  {
    language: "php",
    ending: "php",
    needs: ["php", "php-curl"],
    check: [
      "php",
      "-r",
      "array_map(fn ($one) => token_get_all(file_get_contents($one), TOKEN_PARSE), glob('*.php'));",
    ],
    run: ["php"],
  },
  {
    language: "go",
    ending: "go",
    needs: ["go"],
    check: ["go", "run", "cmd/gofmt", "-l", "."],
    run: ["go", "run"],
  },
  {
    language: "shell",
    ending: "sh",
    needs: ["bash", "curl"],
    check: ["bash", "-c", 'for one in *.sh; do bash -n "$one"; done'],
    run: ["bash"],
  },
];

describe.each(CHECKS)("$language", ({ language, ending, needs, check, run }) => {
  test.skipIf(lacks(...needs))(
    "every sample is valid, and two run unchanged",
    async () => {
      const folder = join(work, language);
      mkdirSync(folder);
      if (language === "typescript")
        buildTypescriptPackage(join(folder, "node_modules/@reviewrelay/sdk"));
      const files = new Map(
        [...(samples.get(language) ?? [])].map(([name, text]) => {
          const path = join(folder, `${name}.${ending}`);
          writeFileSync(path, text);
          return [name, path];
        }),
      );
      writeFileSync(join(folder, "tsconfig.json"), TSCONFIG);
      expect(
        await output(
          check.map((one) => (one === "TSC" ? TSC : one)),
          folder,
        ),
      ).toBe("");
      const { email } = product.tenants.partners[0].owner;
      for (const [name, printed] of [
        ["verifyToken", email],
        ["createPersonalAccessToken", "Nightly export"],
      ] as const)
        expect(await output([...run, files.get(name) ?? ""], folder)).toContain(printed);
    },
    120_000,
  );
});

interface Check {
  readonly language: string;
  readonly ending: string;
  readonly needs: readonly NeedName[];
  /** Checks all samples in the working folder. */
  readonly check: readonly string[];
  /** Runs the sample that follows. */
  readonly run: readonly string[];
}

const ROOT = join(import.meta.dir, "../..");
const TSC = join(ROOT, "node_modules/.bin/tsc");
const TSCONFIG = JSON.stringify({
  compilerOptions: {
    module: "esnext",
    moduleResolution: "bundler",
    target: "es2022",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    moduleDetection: "force",
    types: ["node"],
    typeRoots: [join(ROOT, "node_modules/@types")],
  },
});

/** Returns the samples of a page as operation, language and text. */
function samplesIn(html: string): [string, string, string][] {
  return html.split('<section class="operation">').flatMap((section) => {
    const [, name = ""] = /<h[23] id="(\w+)"/.exec(section) ?? [];
    const [, after = ""] = section.split('<div class="samples">');
    const blocks = after.matchAll(/data-language="(\w+)"><pre tabindex="0"><code>(.*?)<\/code>/gs);
    return [...blocks]
      .map(([, language = "", text = ""]): [string, string, string] => [
        name,
        language,
        plain(text),
      ])
      .filter(([, language]) => language !== "json");
  });
}

const plain = (html: string): string =>
  html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&");

/** Runs a command, which must succeed, and returns all that it prints. */
async function output(command: readonly string[], cwd: string): Promise<string> {
  const env = { ...process.env, ...GO_ENV, TOKEN: token, PYTHONPATH: join(ROOT, "src/sdk/python") };
  const ran = Bun.spawn([...command], { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [out, error] = await Promise.all([
    new Response(ran.stdout).text(),
    new Response(ran.stderr).text(),
  ]);
  expect([command.join(" "), await ran.exited, error]).toEqual([
    command.join(" "),
    0,
    expect.any(String),
  ]);
  return out;
}
