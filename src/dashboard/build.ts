// Builds the dashboard into one file: `bun src/dashboard/build.ts [file]`; by default the file that the API
// server looks for. Runs as a separate process, because the bundler takes 300 MB of memory that an API server
// would not release.
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { rolldown, type OutputAsset, type OutputChunk, type Plugin } from "rolldown";

import { encode, SLOWLY } from "../lib/encodings.ts";
import { fileOfBuild, writeAssets, type Asset } from "./assets.ts";
import { chunkLinks } from "./chunk-links.ts";
import { styleSheet } from "./styles.ts";

const PROGRAM = join(import.meta.dirname, "app/main.tsx");
const STYLES = join(import.meta.dirname, "app/main.css");
const NAME = "[name]-[hash].js";

/**
 * Plugin that imports the sample programs of the guide as text and not as code, because the pages show their
 * source.
 */
const samples: Plugin = {
  name: "samples",
  load: {
    filter: { id: /\/docs\/verify\// },
    handler: async (path) => ({ code: await readFile(path, "utf8"), moduleType: "text" }),
  },
};

/**
 * Modules that are rarely needed, or not needed initially: the forms of a subscription, the sample events and
 * the charts. They are left out of the shared chunks.
 */
const RARELY_NEEDED =
  /NumberInput|number-format|Pill|use-pills|event-examples|verify|webhooks\/form|uplot|ui\/chart|stats\/stats-series|stats\/.*-chart/;
const OF_PAGES = /app\/pages\//;
const OF_WEBHOOKS = /app\/pages\/webhooks\//;

/**
 * Bundles the scripts. Code is split at dynamic imports of pages, and modules that pages share are grouped:
 * `start` for the first load, `common` for all signed-in users, and one group per area. With automatic
 * splitting, each set of pages that share a module would get a chunk, up to forty chunks for one page.
 */
async function scripts(): Promise<Asset[]> {
  const links = chunkLinks();
  const bundle = await rolldown({
    input: PROGRAM,
    platform: "browser",
    plugins: [samples, links.plugin],
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
    // Hides warnings, because Rolldown warns about the "use client" directive in each file of the libraries.
    logLevel: "silent",
  });
  const { output } = await bundle.generate({
    format: "esm",
    minify: true,
    entryFileNames: NAME,
    chunkFileNames: NAME,
    codeSplitting: {
      groups: [
        { name: "start", tags: ["$initial"], priority: 1 },
        shared("common", (id) => !OF_PAGES.test(id)),
        shared("webhooks", (id) => OF_WEBHOOKS.test(id)),
        shared("people", (id) => OF_PAGES.test(id)),
      ],
    },
  });
  await bundle.close();
  const sheets = (await links.sheets()).map((one) => assetOf(one.name, one.text, false));
  return [...sheets, ...output.map(scriptOf)];
}

/** Defines a chunk of all matching modules that at least two pages import. */
function shared(name: string, isOf: (id: string) => boolean) {
  return { name, minShareCount: 2, test: (id: string) => isOf(id) && !RARELY_NEEDED.test(id) };
}

function scriptOf(one: OutputChunk | OutputAsset): Asset {
  if (one.type === "asset") throw new Error(`${one.fileName} is no script.`);
  return assetOf(one.fileName, one.code, one.isEntry);
}

async function styles(): Promise<Asset> {
  const { name, text } = await styleSheet("main", [STYLES]);
  return assetOf(name, text, true);
}

function assetOf(name: string, text: string, isEntry: boolean): Asset {
  const contentType = `text/${name.endsWith(".css") ? "css" : "javascript"};charset=utf-8`;
  const encodings = encode(new TextEncoder().encode(text), SLOWLY);
  return { name, contentType, isEntry, encodings };
}

const file = process.argv[2] ?? (await fileOfBuild());
await mkdir(dirname(file), { recursive: true });
const assets = [await styles(), ...(await scripts())];
// Renames the finished file, which makes the build atomic: a concurrent reader sees either the complete build
// or no file.
await writeFile(`${file}.${process.pid}`, writeAssets(assets));
await rename(`${file}.${process.pid}`, file);
// Deletes builds of other sources, which no process reads any more.
for (const name of await readdir(dirname(file)))
  if (/^dashboard-\w+\.json$/.test(name) && name !== basename(file))
    await rm(join(dirname(file), name), { force: true });
