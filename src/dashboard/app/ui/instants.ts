/**
 * Reads a text as an instant and answers it in UTC; `2026-06-01T10:30` of a field is the reader's own time. Answers
 * undefined for what is no time.
 */
export function instantOf(text: string | undefined): string | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/**
 * Writes an instant as `<input type="datetime-local">` wants it, on the clock of whoever looks; empty for what is no
 * time.
 */
export function localTimeOf(text: string | undefined): string {
  const instant = instantOf(text);
  if (instant === undefined) return "";
  const at = new Date(instant);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
