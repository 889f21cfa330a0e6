/** Lays JSON out in lines; answers undefined for text that is no JSON. */
export function inLines(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}
