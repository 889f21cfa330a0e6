/** Plain JSON as a YAML text for people. */
export function toYaml(value: unknown): string {
  return Bun.YAML.stringify(value, null, 1);
}
