/** Formats plain JSON as indented YAML. */
export function toYaml(value: unknown): string {
  return Bun.YAML.stringify(value, null, 1);
}
