/** Bundles a program for Node into one file. */
export async function bundleForNode(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: "node", format: "esm" });
  const [file] = built.outputs;
  if (file === undefined) throw new Error(`The bundler made nothing of ${entry}.`);
  return file.text();
}
