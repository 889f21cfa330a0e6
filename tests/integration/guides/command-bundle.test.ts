// Tests the command as partners download it: one file that runs on Node 20, too.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startProduct, type Product } from "../../support/product.ts";
import { lacks } from "../../support/needs.ts";

test("the bundle uses only features of Node 20", async () => {
  const text = await Bun.file(file).text();
  expect(text.length).toBeGreaterThan(1_000);
  expect(NEWER.flatMap((one) => one.exec(text)?.[0] ?? [])).toEqual([]);
});

test.skipIf(lacks("node"))("signs in under Node", async () => {
  const child = Bun.spawn(["node", file, "login", "--no-browser", "--server", product.root], {
    env: { PATH: process.env["PATH"] ?? "", XDG_CONFIG_HOME: folder },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let said = "";
  for await (const chunk of child.stderr) {
    said += new TextDecoder().decode(chunk);
    if (said.includes("code_challenge_method=S256")) break;
  }
  child.kill();
  await child.exited;
  expect(said).toContain(`${product.root}/oauth/authorize?`);
});

/** Language features and library functions that Node 20 lacks. */
const NEWER = [
  /Promise\.(?:withResolvers|try)\b/,
  /Array\.fromAsync\b/,
  /(?:Object|Map)\.groupBy\b/,
  /RegExp\.escape\b/,
  /\bURL\.parse\b/,
  /\.(?:symmetricDifference|isSubsetOf|isSupersetOf|isDisjointFrom|toBase64|fromBase64|toHex|fromHex)\b/,
  /\bIterator\./,
  /\b(?:import\.meta\.(?:main|dirname|filename)|Float16Array|Math\.sumPrecise|Error\.isError)\b/,
  /\bawait using\b|\busing \w+ = /,
  /\bBun\./,
];

let product: Product;

let folder: string;

let file: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "bundle-"));
  file = join(folder, "reviewrelay.mjs");
  product = await startProduct();
  writeFileSync(file, await (await fetch(`${product.root}/docs/reviewrelay.mjs`)).text());
});

afterAll(async () => {
  await product.stop();
  rmSync(folder, { recursive: true, force: true });
});
