/** The source of time. Rules receive `now` as a value; only use cases, loops and composition roots have a Clock. */
export interface Clock {
  /** Wall time, for instants that are stored or shown. It may jump. */
  now(): Date;
  /** Monotonic time in ms, for durations and leases. It never jumps, and has no meaning outside of this process. */
  monotonicMs(): number;
  /** Resolves after `ms`, or immediately when the signal aborts; the caller checks `signal.aborted`. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Maximum delay of a timer in ms. A longer sleep ends early at this delay, and its loop sleeps again. */
const MAX_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
      signal?.addEventListener("abort", done);
    }),
};

export function addMs(at: Date, ms: number): Date {
  return new Date(at.getTime() + ms);
}

export function fromMs(msSinceEpoch: number): Date {
  return new Date(msSinceEpoch);
}

/** Formats an instant as responses and webhooks contain it: `2026-06-01T12:00:00.000+00:00` (contract 2.3). */
export function isoInstant(at: Date): string {
  return `${at.toISOString().slice(0, -1)}+00:00`;
}

/** Formats an instant for people whose time zone is unknown, as in mails: `2026-06-01 12:00:00 UTC`. */
export function utcTime(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Bounds of the accepted instants: the years 1 to 9999. PostgreSQL has no year 0, and later years need five digits. */
const FIRST_MS = -62_135_596_800_000;
const LAST_MS = 253_402_300_799_999;
const DAYS_OF_EVERY_MONTH = 28;
const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Parses an ISO 8601 instant with an offset. Returns undefined for any other text, for a date that does not exist, such
 * as `2026-02-30`, and for undefined.
 */
export function parseInstant(text: string | undefined): Date | undefined {
  if (text === undefined || !RFC3339.test(text)) return undefined;
  const at = new Date(text);
  if (!(at.getTime() >= FIRST_MS && at.getTime() <= LAST_MS)) return undefined;
  if (Number(text.slice(8, 10)) <= DAYS_OF_EVERY_MONTH) return at;
  // `Date` turns 30 February into 2 March. So the day must be the same when it is formatted again.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return day.toISOString().startsWith(text.slice(0, 10)) ? at : undefined;
}
