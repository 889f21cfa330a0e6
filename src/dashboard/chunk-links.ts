import type { Plugin, RenderedChunk } from "rolldown";

import { styleSheet, type Sheet } from "./styles.ts";

/**
 * Rolldown plugin. Makes a chunk wait for the style sheets that its modules import. Makes each dynamic import
 * preload all files that the imported chunk needs, because a browser would otherwise discover them one round
 * trip after the other.
 */
export function chunkLinks() {
  const sheets = new Map<string, Promise<Sheet>>();
  const sheetOf = async ({ name, moduleIds }: RenderedChunk) => {
    const paths = moduleIds.filter((id) => id.endsWith(".css"));
    const key = paths.join();
    if (key !== "" && !sheets.has(key)) sheets.set(key, styleSheet(name, paths));
    return sheets.get(key);
  };
  const plugin: Plugin = {
    name: "chunk-links",
    load: {
      filter: { id: /\.css$/ },
      handler: () => ({ code: "", moduleType: "js", moduleSideEffects: "no-treeshake" }),
    },
    async renderChunk(code, chunk, _options, { chunks }) {
      const sheet = await sheetOf(chunk);
      const links = new Map<string, string[]>();
      for (const file of chunk.dynamicImports) {
        const needed = [...neededBy(file, chunks)];
        const styles = await Promise.all(needed.map(sheetOf));
        const names = needed.map((one) => one.fileName).filter((one) => one !== file);
        links.set(file, [...names, ...styles.flatMap((one) => (one ? [one.name] : []))]);
      }
      const linked = code.replaceAll(/\bimport\("\.\/([^"]+)"\)/g, (call, file: string) =>
        links.get(file)?.length ? `($ahead(${JSON.stringify(links.get(file))}),${call})` : call,
      );
      const parts = [sheet && waitFor(sheet), linked !== code && AHEAD, linked];
      return { code: parts.filter(Boolean).join("\n") };
    },
  };
  return { plugin, sheets: () => Promise.all(sheets.values()) };
}

type Chunks = Readonly<Record<string, RenderedChunk>>;

/**
 * Returns the chunk and all chunks that it imports, directly or indirectly, except the entry, which is already
 * loaded.
 */
function neededBy(file: string, chunks: Chunks, found = new Set<RenderedChunk>()) {
  const chunk = chunks[file];
  if (chunk === undefined || chunk.isEntry || found.has(chunk)) return found;
  found.add(chunk);
  for (const one of chunk.imports) neededBy(one, chunks, found);
  return found;
}

/**
 * Script code that preloads files. Does nothing offline, because a browser does not try a failed preload again
 * while the document is open.
 */
const AHEAD = `const $ahead = (names) => {
  if (!navigator.onLine) return;
  for (const name of names) {
    const kind = name.endsWith(".css") ? { rel: "preload", as: "style" } : { rel: "modulepreload" };
    const href = new URL("./" + name, import.meta.url).href;
    document.head.append(Object.assign(document.createElement("link"), kind, { href }));
  }
};`;

/**
 * Script code that waits for a style sheet. If the sheet fails to load, the import of the chunk fails as it
 * does for a missing script, so callers need only one error path.
 */
const waitFor = ({ name }: Sheet) => `await new Promise((onload, fail) => {
  const href = new URL("./${name}", import.meta.url).href;
  const onerror = () => fail(new TypeError("Failed to load " + href));
  const link = { rel: "stylesheet", href, onload, onerror };
  document.head.append(Object.assign(document.createElement("link"), link));
});`;
