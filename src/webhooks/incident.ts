import { addMs } from "../lib/clock.ts";
import { BUCKET_MS } from "./stats.ts";

/** An attempt that was no success. */
export interface TroubleAttempt {
  readonly eventId: string;
  readonly startedAt: Date;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
}

export interface Cause {
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** For each step since the beginning. */
  readonly counts: readonly number[];
}

/** Columns of the little chart. */
const STEPS_AT_MOST = 24;

/** How long a step is, so that there are few from `since` to `now`. */
export function incidentStepMs(since: Date, now: Date): number {
  const spanMs = Math.max(1, now.getTime() - since.getTime() + 1);
  return Math.ceil(spanMs / STEPS_AT_MOST / BUCKET_MS) * BUCKET_MS;
}

/** What went wrong, by status or error, the most frequent first. */
export function causesOf(
  attempts: readonly TroubleAttempt[],
  { since, stepMs, now }: { readonly since: Date; readonly stepMs: number; readonly now: Date },
): Cause[] {
  const steps = Math.floor((now.getTime() - since.getTime()) / stepMs) + 1;
  const byCause = Map.groupBy(attempts, (one) => `${one.statusCode ?? one.errorCode}`);
  const causes = [...byCause.values()].map((ones): Cause => {
    const times = ones.map((one) => one.startedAt.getTime());
    const counts = Array.from({ length: steps }, () => 0);
    for (const ms of times) {
      const step = Math.min(steps - 1, Math.max(0, Math.floor((ms - since.getTime()) / stepMs)));
      counts[step] = (counts[step] ?? 0) + 1;
    }
    return {
      statusCode: ones[0]?.statusCode ?? null,
      errorCode: ones[0]?.errorCode ?? null,
      attempts: ones.length,
      firstAt: addMs(since, Math.min(...times) - since.getTime()),
      lastAt: addMs(since, Math.max(...times) - since.getTime()),
      counts,
    };
  });
  return causes.toSorted((a, b) => b.attempts - a.attempts);
}
