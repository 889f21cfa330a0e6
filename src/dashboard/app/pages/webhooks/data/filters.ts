import { readNumbers } from "../../../../../outbox/event-numbers.ts";
import { idOf } from "../../../ui/format.ts";

/** Delivery attempt as the event stream sends it. */
export interface AttemptRow {
  readonly event_id: string;
  readonly event: string;
  readonly started_at: string;
  readonly outcome: string;
}

type AttemptFilter = Pick<DeliveryFilter, "event" | "event_id" | "outcome" | "since" | "until">;
export const OUTCOMES = ["delivered", "retry", "failed", "interrupted"] as const;
export type Outcome = (typeof OUTCOMES)[number];

const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i;
export const isUlid = (text: string): boolean => ULID_PATTERN.test(text);

/** Reads a filter from the address. Values that the API would reject are left out. */
function readFilter<const N extends string>(
  params: URLSearchParams,
  names: readonly N[],
  isValid: (name: N, value: string) => boolean,
): { readonly [K in N]?: string } {
  const given = names.flatMap((name) => {
    const value = params.get(name)?.trim() ?? "";
    return value !== "" && isValid(name, value) ? [[name, value] as const] : [];
  });
  // The assertion is needed because `Object.fromEntries` does not keep the names.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(given) as { readonly [K in N]?: string };
}

/**
 * Returns whether an attempt from the event stream matches the filter of the list. The filter's `until` is
 * exclusive.
 */
export function isMatch(row: AttemptRow, filter: AttemptFilter): boolean {
  const at = Date.parse(row.started_at);
  return (
    (filter.event === undefined || filter.event === row.event) &&
    (filter.event_id === undefined || filter.event_id.toUpperCase() === row.event_id) &&
    (filter.outcome === undefined || filter.outcome === row.outcome) &&
    (filter.since === undefined || at >= Date.parse(filter.since)) &&
    (filter.until === undefined || at < Date.parse(filter.until))
  );
}

export const MESSAGE_FILTER_NAMES = [
  "review_id",
  "external_review_id",
  "event",
  "event_id",
  "sequence",
  "state",
  "outcome",
  "status",
  "q",
  "within",
  "since",
  "until",
] as const;
type Name = (typeof MESSAGE_FILTER_NAMES)[number];

export type DeliveryFilter = { readonly [K in Name]?: string };

export const STATES = ["pending", "waiting", "held", "delivered", "failed", "skipped"] as const;
/** Value of the API's `outcome` filter that matches all outcomes except `delivered`. */
export const ALL_FAILURES = "not_delivered";
/** Maps a preset period in the address to its length in ms. The period ends now. */
export const PRESETS = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 } as const;
type Preset = keyof typeof PRESETS;

const STATUS_PATTERN = /^([1-5]xx|[1-5]\d\d|none)$/;

/** Reads the filter of the event list. */
export const deliveryFilterOf = (params: URLSearchParams): DeliveryFilter =>
  readFilter(params, MESSAGE_FILTER_NAMES, isMessageValue);

function isMessageValue(name: Name, value: string): boolean {
  if (name === "review_id") return isReviewId(value);
  if (name === "event_id") return isUlid(value);
  if (name === "sequence") return areNumbers(value);
  if (name === "state") return STATES.some((one) => one === value);
  if (name === "outcome") return value === ALL_FAILURES || OUTCOMES.some((one) => one === value);
  if (name === "status") return isStatus(value);
  if (name === "within") return isPreset(value);
  if (name === "since" || name === "until") return !Number.isNaN(Date.parse(value));
  return value.length <= (name === "q" ? 200 : 255);
}

const isPreset = (value: string): value is Preset => Object.hasOwn(PRESETS, value);
export const areNumbers = (value: string): boolean => readNumbers(value) !== undefined;
export const isStatus = (value: string): boolean => STATUS_PATTERN.test(value);

/**
 * Returns whether a text may be our numeric id of a review. The caller treats any other text as the review
 * site's id.
 */
export const isReviewId = (text: string): boolean => idOf(text) !== undefined;

/**
 * Converts the filter of the event list to query parameters of the API. A preset period becomes a period that
 * ends at `now`.
 */
export function deliveryQuery({ within, ...filter }: DeliveryFilter, now: number) {
  if (within === undefined || !isPreset(within)) return filter;
  const { since: _, until: __, ...others } = filter;
  return { ...others, since: new Date(now - PRESETS[within]).toISOString() };
}
