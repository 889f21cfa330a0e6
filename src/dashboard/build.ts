// Builds the dashboard into one file: `bun src/dashboard/build.ts [file]`; by default the file that the API
// server looks for. Runs as a separate process, because the bundler takes 300 MB of memory that an API server
// would not release.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build, type Rolldown } from "vite";

import { encode, SLOWLY } from "../lib/encodings.ts";
import { type Asset, type Built, fileOfBuild, writeBuilt } from "./assets.ts";
import { config } from "./vite.config.ts";

const DOCUMENT = "index.html";
const FOLDER = "assets/";

async function buildDashboard(): Promise<Built> {
  const result = await build(config);
  if (!("output" in result)) throw new Error("The dashboard has one build.");
  checkStyles(result.output);
  let document = "";
  const assets: Asset[] = [];
  for (const one of result.output) {
    const content = one.type === "chunk" ? one.code : one.source;
    if (one.fileName === DOCUMENT) document = content.toString();
    else assets.push(assetOf(one.fileName, content));
  }
  return { document, assets };
}

/** Components that others build on, such as Radio and Select. Pages do not show them, so they need no styles. */
const NEVER_SHOWN = [
  "CheckboxCard",
  "CheckboxIndicator",
  "RadioCard",
  "RadioIndicator",
  "ScrollArea",
];

/** Throws if the build contains a component of Mantine whose style sheet no file of the dashboard imports. */
function checkStyles(output: Rolldown.RolldownOutput["output"]): void {
  const app = fileURLToPath(new URL("app/", import.meta.url));
  const styles = readdirSync(app, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:css|tsx)$/.test(name))
    .map((name) => readFileSync(join(app, name), "utf8"))
    .join("\n");
  const folder = dirname(fileURLToPath(import.meta.resolve("@mantine/core/styles/Button.css")));
  const used = output.flatMap((one) =>
    Object.entries(one.type === "chunk" ? one.modules : {}).flatMap(([path, { renderedLength }]) =>
      renderedLength > 0 && path.includes("@mantine/core/") ? [basename(path, ".mjs")] : [],
    ),
  );
  const missing = [...new Set(used)].filter(
    (name) =>
      existsSync(join(folder, `${name}.css`)) &&
      !NEVER_SHOWN.includes(name) &&
      !styles.includes(`"@mantine/core/styles/${name}.css"`),
  );
  if (missing.length > 0) throw new Error(`No file imports the styles of ${missing.join(", ")}.`);
}

function assetOf(fileName: string, content: string | Uint8Array): Asset {
  const bytes =
    typeof content === "string" ? new TextEncoder().encode(content) : Uint8Array.from(content);
  return {
    name: fileName.slice(FOLDER.length),
    contentType: `text/${fileName.endsWith(".css") ? "css" : "javascript"};charset=utf-8`,
    encodings: encode(bytes, SLOWLY),
  };
}

const file = process.argv[2] ?? (await fileOfBuild());
await mkdir(dirname(file), { recursive: true });
// Renames the finished file, which makes the build atomic: a concurrent reader sees either the complete build
// or no file.
await writeFile(`${file}.${process.pid}`, writeBuilt(await buildDashboard()));
await rename(`${file}.${process.pid}`, file);
// Deletes builds of other sources, which no process reads any more.
for (const name of await readdir(dirname(file)))
  if (/^dashboard-\w+\.json$/.test(name) && name !== basename(file))
    await rm(join(dirname(file), name), { force: true });
