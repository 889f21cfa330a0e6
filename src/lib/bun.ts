/** Functions that need an API of Bun. */

/** Formats plain JSON as indented YAML. */
export function toYaml(value: unknown): string {
  return Bun.YAML.stringify(value, null, 1);
}

/** Bundles a program for Node into one file. */
export async function bundleForNode(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], target: "node", format: "esm" });
  const [file] = built.outputs;
  if (file === undefined) throw new Error(`The bundler produced no output for ${entry}.`);
  return file.text();
}
