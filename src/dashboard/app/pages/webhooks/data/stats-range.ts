export type StatsRange = "1h" | "24h" | "7d" | "30d";

interface Range {
  readonly label: string;
  readonly spanMs: number;
  /** Seconds per point; the API counts in steps of five minutes. */
  readonly stepS: number;
}

const HOUR_MS = 3_600_000;

export const STATS_RANGES: Readonly<Record<StatsRange, Range>> = {
  "1h": { label: "1 hour", spanMs: HOUR_MS, stepS: 300 },
  "24h": { label: "24 hours", spanMs: 24 * HOUR_MS, stepS: 1_800 },
  "7d": { label: "7 days", spanMs: 7 * 24 * HOUR_MS, stepS: 3 * 3_600 },
  "30d": { label: "30 days", spanMs: 30 * 24 * HOUR_MS, stepS: 12 * 3_600 },
};

/** Reads the range from the address; anything unknown is a day. */
export function rangeOf(text: string | null): StatsRange {
  return text === "1h" || text === "7d" || text === "30d" ? text : "24h";
}
