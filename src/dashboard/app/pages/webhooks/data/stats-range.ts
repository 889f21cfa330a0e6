const TIME_FORMAT = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "numeric",
  minute: "2-digit",
});

export const formatTime = (seconds: number): string => TIME_FORMAT.format(seconds * 1_000);

/** Formats a period as text, such as `Fri, Nov 21, 10:00 AM – 11:00 AM`. */
export function formatPeriod(period: { readonly since: string; readonly until: string }): string {
  return TIME_FORMAT.formatRange(new Date(period.since), new Date(period.until));
}

/** Converts a period from Unix times in seconds to ISO 8601 times, as the address contains them. */
export const periodAt = (since: number, until: number) => ({
  since: new Date(since * 1_000).toISOString(),
  until: new Date(until * 1_000).toISOString(),
});

type StatsRange = "1h" | "24h" | "7d" | "30d";

/** Period between two ISO 8601 times; `since` is inclusive, `until` exclusive. */
export interface Period {
  readonly since: string;
  readonly until: string;
}

/** Time span of a chart: a range that ends now, or a period that the user selected. */
export type Span = StatsRange | Period;

interface Range {
  readonly label: string;
  readonly spanMs: number;
  /** Seconds per point of the chart. A multiple of 300, because the API counts in intervals of five minutes. */
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

/** Parses the chart's range from the address. Any other text yields the default of `24h`. */
export function rangeOf(text: string | null): StatsRange {
  return text === "1h" || text === "7d" || text === "30d" ? text : "24h";
}

/** Parses the chart's period from the address; undefined if the address contains no valid period. */
export function periodOf(params: URLSearchParams): Period | undefined {
  const since = params.get("since") ?? "";
  const until = params.get("until") ?? "";
  return Date.parse(since) < Date.parse(until) ? { since, until } : undefined;
}

/** Maximum number of points in a chart; with more points the bars would be too narrow. */
const MAX_POINTS = 60;
/**
 * Possible widths of a chart's time step in seconds. Each width divides the next, so that a selected period of
 * whole steps can be divided into shorter steps.
 */
const STEPS_S = [300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400];

/** Returns the query parameters of the statistics API for the time span of a chart. */
export function statsQuery(span: Span, now: number) {
  if (typeof span === "string") {
    const { spanMs, stepS } = STATS_RANGES[span];
    return { since: new Date(now - spanMs).toISOString(), step: stepS };
  }
  const seconds = (Date.parse(span.until) - Date.parse(span.since)) / 1_000;
  const step = STEPS_S.find((one) => seconds / one <= MAX_POINTS) ?? 86_400;
  return { ...span, step };
}

const FIVE_MINUTES_MS = 300_000;

/**
 * Returns the time span of the chart above a list with this filter; undefined if the filter's period is empty or
 * begins in the future. Spans are limited to 30 days, because attempts are deleted after 30 days.
 */
export function spanOf(
  filter: { readonly within?: string; readonly since?: string; readonly until?: string },
  now: number,
): Span | undefined {
  const { within, since, until } = filter;
  if (within !== undefined) return rangeOf(within);
  if (since === undefined && until === undefined) return "30d";
  // Rounds the current time up to five minutes, so that the query key does not change with every render.
  const present = Math.ceil(now / FIVE_MINUTES_MS) * FIVE_MINUTES_MS;
  const end = Math.min(present, until === undefined ? present : Date.parse(until));
  const first = end - STATS_RANGES["30d"].spanMs;
  const start = Math.max(first, since === undefined ? first : Date.parse(since));
  if (start >= end) return undefined;
  return { since: new Date(start).toISOString(), until: new Date(end).toISOString() };
}
