import { percentOf } from "../../../lib/percent.ts";

/** Formats an identifier such as `review_received` as text: `Review received`. */
export function sentence(value: string): string {
  const words = value.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const NUMBER_FORMAT = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const number = (value: number): string => NUMBER_FORMAT.format(value);

const PERCENT_FORMAT = new Intl.NumberFormat(undefined, {
  style: "percent",
  maximumFractionDigits: 1,
});
/** Formats a share as a percentage, such as 0.984 as `98.4%`. A share below 1 is never shown as 100 %. */
export const percent = (share: number): string => PERCENT_FORMAT.format(percentOf(share) / 100);

/** Formats a number with its noun in singular or plural: `1 event`, `3 events`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  return value < 1_000 ? `${number(value)} ms` : `${number(value / 1_000)} s`;
}

/** Formats a duration in its largest unit, such as `90 s` as `2 min`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${number(seconds / 3_600)} h`;
  return `${number(seconds / 86_400)} d`;
}

const RELATIVE_FORMAT = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/**
 * Parses a date and time, and returns it in UTC; undefined if it is invalid. A value without a time zone, as a
 * form field contains it (`2026-06-01T10:30`), is in the user's time zone.
 */
export function instantOf(text: string | undefined): string | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/**
 * Formats a time for `<input type="datetime-local">` in the user's time zone. Returns an empty string for an
 * invalid time.
 */
export function localTimeOf(text: string | undefined): string {
  const instant = instantOf(text);
  if (instant === undefined) return "";
  const at = new Date(instant);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Formats a time in ms relative to `now`, such as "2 hours ago". */
export function inWords(at: number, now: number, mayBeAhead: boolean): string {
  const seconds = (at - now) / 1_000;
  return relativeTime(mayBeAhead ? seconds : Math.min(0, seconds));
}

function relativeTime(seconds: number): string {
  if (Math.round(seconds) === 0) return "just now";
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  return RELATIVE_FORMAT.format(Math.round(seconds / size), unit);
}

/** Formats seconds as minutes and seconds, such as 65 as `1:05`. */
export function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Formats JSON with indentation; undefined if the text is not JSON. */
export function inLines(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}

const MAX_ID = 2_147_483_647;

/** Parses a numeric database id from the address or a form field; undefined if the text cannot be an id. */
export function idOf(text: string | undefined): number | undefined {
  const isId = text !== undefined && /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_ID;
  return isId ? Number(text) : undefined;
}

// The mails name a device in the same words.
export { deviceOf } from "../../../lib/device.ts";
