const AT = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

export const formatTime = (seconds: number): string => AT.format(seconds * 1_000);

/** Formats a period, such as `Fri, Nov 21, 10:00 AM – 11:00 AM`. */
export function formatPeriod(period: { readonly since: string; readonly until: string }): string {
  return AT.formatRange(new Date(period.since), new Date(period.until));
}

/** Converts a period in seconds to the ISO 8601 instants of the address. */
export const periodAt = (since: number, until: number) => ({
  since: new Date(since * 1_000).toISOString(),
  until: new Date(until * 1_000).toISOString(),
});

type StatsRange = "1h" | "24h" | "7d" | "30d";

/** A half-open period: `since` is included, `until` is not. */
export interface Period {
  readonly since: string;
  readonly until: string;
}

/** The time span of a chart: a range up to now, or a selected period. */
export type Span = StatsRange | Period;

interface Range {
  readonly label: string;
  readonly spanMs: number;
  /** Seconds per point, a multiple of the five minutes in which the API counts. */
  readonly stepS: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const STATS_RANGES: Readonly<Record<StatsRange, Range>> = {
  "1h": { label: "1 hour", spanMs: HOUR_MS, stepS: 300 },
  "24h": { label: "24 hours", spanMs: DAY_MS, stepS: 1_800 },
  "7d": { label: "7 days", spanMs: 7 * DAY_MS, stepS: 3 * 3_600 },
  "30d": { label: "30 days", spanMs: 30 * DAY_MS, stepS: 12 * 3_600 },
};

/** Parses the range from the address; the default is `24h`. */
export function rangeOf(text: string | null): StatsRange {
  return text === "1h" || text === "7d" || text === "30d" ? text : "24h";
}

/** Parses the period from the address; undefined if there is none. */
export function periodOf(params: URLSearchParams): Period | undefined {
  const since = params.get("since") ?? "";
  const until = params.get("until") ?? "";
  return Date.parse(since) < Date.parse(until) ? { since, until } : undefined;
}

/** The highest number of points in a chart, limited by the width of its bars. */
const POINTS = 60;
/**
 * Step widths in seconds. Each divides the next, so that a period of whole steps can be divided into shorter
 * steps.
 */
const STEPS_S = [300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400];

/** Returns the query of the statistics API for a span. */
export function statsQuery(span: Span, now: number) {
  if (typeof span === "string") {
    const { spanMs, stepS } = STATS_RANGES[span];
    return { since: new Date(now - spanMs).toISOString(), step: stepS };
  }
  const seconds = (Date.parse(span.until) - Date.parse(span.since)) / 1_000;
  const step = STEPS_S.find((one) => seconds / one <= POINTS) ?? 86_400;
  return { ...span, step };
}

const FIVE_MINUTES_MS = 300_000;

/**
 * Returns the span of the chart above a list with this filter. Attempts are kept for 30 days, so it is at
 * most 30 days long.
 */
export function spanOf(
  filter: { readonly within?: string; readonly since?: string; readonly until?: string },
  now: number,
): Span | undefined {
  const { within, since, until } = filter;
  if (within !== undefined) return rangeOf(within);
  if (since === undefined && until === undefined) return "30d";
  // Rounded up to five minutes, so that the query key stays the same for a while.
  const present = Math.ceil(now / FIVE_MINUTES_MS) * FIVE_MINUTES_MS;
  const end = Math.min(present, until === undefined ? present : Date.parse(until));
  const first = end - STATS_RANGES["30d"].spanMs;
  const start = Math.max(first, since === undefined ? first : Date.parse(since));
  if (start >= end) return undefined;
  return { since: new Date(start).toISOString(), until: new Date(end).toISOString() };
}
