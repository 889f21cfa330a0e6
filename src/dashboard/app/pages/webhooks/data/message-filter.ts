import { isUlid, OUTCOMES } from "./attempt-rows.ts";

export const MESSAGE_FILTER_NAMES = [
  "review_id",
  "external_review_id",
  "event",
  "event_id",
  "state",
  "outcome",
  "status",
  "q",
  "within",
  "since",
  "until",
] as const;
type Name = (typeof MESSAGE_FILTER_NAMES)[number];

export type MessageFilter = { readonly [K in Name]?: string };

export const STATES = ["pending", "waiting", "held", "delivered", "failed", "skipped"] as const;
/** Any outcome but delivered, as the API calls it. */
export const ALL_FAILURES = "not_delivered";
/** Time until now → its length; the names stand in the address. */
export const PRESETS = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 } as const;
type Preset = keyof typeof PRESETS;

const MAX_REVIEW_ID = 2_147_483_647;
const STATUS = /^([1-5]xx|[1-5]\d\d|none)$/;

/** Reads the filter from the address; what the API would refuse counts as absent. */
export function messageFilterOf(params: URLSearchParams): MessageFilter {
  const given = MESSAGE_FILTER_NAMES.flatMap((name) => {
    const value = params.get(name)?.trim() ?? "";
    return value !== "" && isAllowed(name, value) ? [[name, value] as const] : [];
  });
  return Object.fromEntries(given);
}

function isAllowed(name: Name, value: string): boolean {
  if (name === "review_id") return isReviewId(value);
  if (name === "event_id") return isUlid(value);
  if (name === "state") return STATES.some((one) => one === value);
  if (name === "outcome") return value === ALL_FAILURES || OUTCOMES.some((one) => one === value);
  if (name === "status") return isStatus(value);
  if (name === "within") return isPreset(value);
  if (name === "since" || name === "until") return !Number.isNaN(Date.parse(value));
  return value.length <= (name === "q" ? 200 : 255);
}

const isPreset = (value: string): value is Preset => Object.hasOwn(PRESETS, value);
export const isStatus = (value: string): boolean => STATUS.test(value);

/** Whether a text may be the id that we gave a review; any other is the id of the review site. */
export function isReviewId(text: string): boolean {
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_REVIEW_ID;
}

/** What the API is asked for; a preset ends at `now`. */
export function messageQuery({ within, ...filter }: MessageFilter, now: number) {
  if (within === undefined || !isPreset(within)) return filter;
  const { since: _, until: __, ...others } = filter;
  return { ...others, since: new Date(now - PRESETS[within]).toISOString() };
}
