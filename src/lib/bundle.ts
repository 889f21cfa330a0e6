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

/** Builds a program for browsers, minified and split where it is imported dynamically, and the styles that it starts with. */
export async function bundleForBrowser(program: string, styles: string): Promise<BundledFile[]> {
  const [file, options] = ["[name]-[hash].[ext]", { minify: true } as const];
  const naming = { entry: file, chunk: file, asset: file };
  const [scripts, sheets] = await Promise.all([
    Bun.build({
      ...options,
      entrypoints: [program],
      target: "browser",
      format: "esm",
      splitting: true,
      define: { "process.env.NODE_ENV": '"production"' },
      naming,
    }),
    // For browsers the bundler would write each logical property four times over, for those without :is() or :dir().
    Bun.build({ ...options, entrypoints: [styles], target: "bun", naming }),
  ]);
  return Promise.all(
    [...sheets.outputs, ...scripts.outputs].map(async (output) => ({
      name: output.path.replace(/^.*\//, ""),
      contentType: output.type,
      bytes: new Uint8Array(await output.arrayBuffer()),
      isEntry: output.kind === "entry-point" || output.path.endsWith(".css"),
    })),
  );
}
