/** JSON laid out in lines, or nothing for text that is no JSON. */
export function inLines(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}
