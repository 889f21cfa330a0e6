/** Builds a program of one file for Node. */
export async function bundleForNode(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: "node", format: "esm" });
  const [file] = built.outputs;
  if (file === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return file.text();
}

/** Builds a style sheet with all that it imports, minified. */
export async function bundleStyles(entry: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: [entry],
    // For browsers Bun would write each logical property four times over, for those without :is() or :dir().
    target: "bun",
    minify: true,
  });
  const [sheet] = built.outputs;
  if (sheet === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return (await sheet.text()).trim();
}
