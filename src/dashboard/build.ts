// Builds the dashboard into one file: `bun src/dashboard/build.ts [file]`; by default the file that the API
// server looks for. Runs as a separate process, because the bundler takes 300 MB of memory that an API server
// would not release.
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { build } from "vite";

import { encode, SLOWLY } from "../lib/encodings.ts";
import { type Asset, type Built, fileOfBuild, writeBuilt } from "./assets.ts";
import { config } from "./vite.config.ts";

const DOCUMENT = "index.html";
const FOLDER = "assets/";

async function buildDashboard(): Promise<Built> {
  const result = await build(config);
  if (!("output" in result)) throw new Error("The dashboard has one build.");
  let document = "";
  const assets: Asset[] = [];
  for (const one of result.output) {
    const content = one.type === "chunk" ? one.code : one.source;
    if (one.fileName === DOCUMENT) document = content.toString();
    else assets.push(assetOf(one.fileName, content));
  }
  return { document, assets };
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
