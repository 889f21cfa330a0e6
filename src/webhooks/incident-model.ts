import { type Static, Type } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import { instantAnswer } from "../http/text.ts";
import { addMs, isoInstant } from "../lib/clock.ts";
import { ALERT_KINDS, type AlertKind } from "../outbox/mail.ts";
import { instantOrNull, orNull } from "./model.ts";
import { BUCKET_MS } from "./stats.ts";

/** The present incident of a subscription. `since` is null if there is none. */
export interface Incident {
  readonly since: Date | null;
  readonly lastAnswer: (FailedAttempt & { readonly responseExcerpt: string | null }) | null;
  readonly stepMs: number;
  readonly causes: readonly Cause[];
  readonly alerts: readonly { readonly kind: AlertKind; readonly raisedAt: Date }[];
}

const cause = {
  status_code: orNull(Type.Integer()),
  error_code: orNull(Type.String()),
};

export const IncidentObject = Type.Object(
  {
    since: orNull(instantAnswer(), {
      description: "Time of the first failed attempt; null without an incident.",
    }),
    last_answer: orNull(
      Type.Object({
        event_id: Type.String(),
        at: instantAnswer(),
        ...cause,
        response_excerpt: orNull(Type.String()),
      }),
      { description: "Result of the last failed attempt." },
    ),
    step: Type.Integer({ description: "Seconds per count." }),
    causes: Type.Array(
      Type.Object({
        ...cause,
        attempts: Type.Integer(),
        first_at: instantAnswer(),
        last_at: instantAnswer(),
        counts: Type.Array(Type.Integer(), {
          description: "Failed attempts per step since `since`.",
        }),
      }),
      { description: "Causes of the last 1,000 failed attempts since then." },
    ),
    alerts: Type.Array(Type.Object({ kind: literals(ALERT_KINDS), raised_at: instantAnswer() }), {
      description: "Alerts raised in this incident.",
    }),
  },
  { title: "Incident" },
);

export function showIncident(one: Incident): Static<typeof IncidentObject> {
  const { lastAnswer: last } = one;
  return {
    since: instantOrNull(one.since),
    last_answer: last && {
      event_id: last.eventId,
      at: isoInstant(last.startedAt),
      status_code: last.statusCode,
      error_code: last.errorCode,
      response_excerpt: last.responseExcerpt,
    },
    step: one.stepMs / 1000,
    causes: one.causes.map((each) => ({
      status_code: each.statusCode,
      error_code: each.errorCode,
      attempts: each.attempts,
      first_at: isoInstant(each.firstAt),
      last_at: isoInstant(each.lastAt),
      counts: [...each.counts],
    })),
    alerts: one.alerts.map(({ kind, raisedAt }) => ({ kind, raised_at: isoInstant(raisedAt) })),
  };
}

export interface FailedAttempt {
  readonly eventId: string;
  readonly startedAt: Date;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
}

interface Cause {
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The number of attempts of each step since the beginning of the incident. */
  readonly counts: readonly number[];
}

/** The most columns of the chart of an incident. */
const MAX_STEPS = 24;

/** Chooses the length of a step so that at most `MAX_STEPS` cover the time from `since` to `now`. */
export function incidentStepMs(since: Date, now: Date): number {
  const spanMs = Math.max(1, now.getTime() - since.getTime() + 1);
  return Math.ceil(spanMs / MAX_STEPS / BUCKET_MS) * BUCKET_MS;
}

/** Groups failed attempts by status or error code, the most frequent first. */
export function causesOf(
  attempts: readonly FailedAttempt[],
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
