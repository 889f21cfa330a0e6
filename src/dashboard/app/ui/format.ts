/** Formats `review_received` as `Review received`. */
export function sentence(value: string): string {
  const words = value.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const NUMBERS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const number = (value: number): string => NUMBERS.format(value);

/** Formats a count with its noun: `1 event`, `3 events`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  return value < 1_000 ? `${number(value)} ms` : `${number(value / 1_000)} s`;
}

/** Formats seconds in the largest unit that is precise enough. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${number(seconds / 3_600)} h`;
  return `${number(seconds / 86_400)} d`;
}

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/**
 * Parses a date-time and returns it in UTC, or undefined if it is invalid. A value without a time zone
 * (`2026-06-01T10:30`), as a field has it, is in the user's time zone.
 */
export function instantOf(text: string | undefined): string | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/**
 * Formats an instant for `<input type="datetime-local">`, in the user's time zone. Returns an empty string
 * for an invalid instant.
 */
export function localTimeOf(text: string | undefined): string {
  const instant = instantOf(text);
  if (instant === undefined) return "";
  const at = new Date(instant);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Formats the distance of an instant in ms from `now`, such as "2 hours ago". */
export function inWords(at: number, now: number, mayBeAhead: boolean): string {
  const seconds = (at - now) / 1_000;
  return relative(mayBeAhead ? seconds : Math.min(0, seconds));
}

function relative(seconds: number): string {
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  return RELATIVE.format(Math.round(seconds / size), unit);
}

/** Formats 65 as `1:05`. */
export function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Formats JSON with indentation. Returns undefined for text that is not JSON. */
export function inLines(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}

const MAX_ID = 2_147_483_647;

/** Parses the id of a row, from the address or a field. Returns undefined for text that cannot be an id. */
export function idOf(text: string | undefined): number | undefined {
  const isId = text !== undefined && /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_ID;
  return isId ? Number(text) : undefined;
}
