/** A file for browsers; its name carries a hash of its content, so that it may be kept for ever. */
export interface BundledFile {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What a page names itself; the rest is loaded by these. */
  readonly isEntry: boolean;
}

/** Builds a program of one file for Node. */
export async function bundleForNode(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: "node", format: "esm" });
  const [file] = built.outputs;
  if (file === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return file.text();
}

/** Builds browser code with Bun's bundler: minified, and split where it is imported dynamically. */
export async function bundleForBrowser(entry: string): Promise<BundledFile[]> {
  const name = "[name]-[hash].[ext]";
  const built = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    format: "esm",
    splitting: true,
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
    naming: { entry: name, chunk: name, asset: name },
  });
  return Promise.all(
    built.outputs.map(async (file) => ({
      name: file.path.replace(/^.*\//, ""),
      contentType: file.type,
      bytes: new Uint8Array(await file.arrayBuffer()),
      // The styles of an entry come as an asset beside it.
      isEntry: file.kind === "entry-point" || file.path.endsWith(".css"),
    })),
  );
}
