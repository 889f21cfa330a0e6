const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

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

/** Says how far an instant in ms is from `now`. */
export function inWords(at: number, now: number, mayBeAhead: boolean): string {
  const seconds = (at - now) / 1_000;
  return relative(mayBeAhead ? seconds : Math.min(0, seconds));
}

function relative(seconds: number): string {
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  return RELATIVE.format(Math.round(seconds / size), unit);
}

/** Writes 65 as `1:05`. */
export function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
