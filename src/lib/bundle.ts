/** Bundles a program for Node into one file. */
export async function bundleForNode(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: "node", format: "esm" });
  const [file] = built.outputs;
  if (file === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return file.text();
}

/** Bundles a style sheet with all style sheets that it imports, minified. */
export async function bundleStyles(entry: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: [entry],
    // Bun's target "browser" would write each logical property four times, for browsers without :is() or :dir().
    target: "bun",
    minify: true,
  });
  const [sheet] = built.outputs;
  if (sheet === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return (await sheet.text()).trim();
}
