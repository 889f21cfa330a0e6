import { Type } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, orNull } from "../http/text.ts";
import { addMs } from "../lib/clock.ts";
import { ALERT_KINDS } from "../outbox/alert.ts";
import type { Attempt } from "./delivery-model.ts";
import { BUCKET_MS } from "./stats.ts";

const causeFields = {
  status_code: orNull(Type.Integer()),
  error_code: orNull(Type.String()),
  tls_reason: orNull(Type.String()),
};

/** The present incident of a subscription. */
export const IncidentObject = Type.Object(
  {
    since: orNull(instantAnswer(), {
      description: "Time of the first failed attempt; null without an incident.",
    }),
    last_answer: orNull(
      Type.Object({
        event_id: Type.String(),
        at: instantAnswer(),
        ...causeFields,
        response_excerpt: orNull(Type.String()),
      }),
      { description: "Result of the last failed attempt." },
    ),
    step: Type.Integer({ description: "Seconds per count." }),
    causes: Type.Array(
      Type.Object({
        ...causeFields,
        attempts: Type.Integer(),
        first_at: instantAnswer(),
        last_at: instantAnswer(),
        counts: Type.Array(Type.Integer(), {
          description: "Failed attempts per step.",
        }),
      }),
      { description: "Causes of the last 1,000 failed attempts." },
    ),
    alerts: Type.Array(Type.Object({ kind: literals(ALERT_KINDS), raised_at: instantAnswer() }), {
      description: "Alerts raised in this incident.",
    }),
  },
  {
    title: "Incident",
    examples: [
      {
        since: "2026-06-01T12:00:00.000+00:00",
        step: 300,
        last_answer: {
          event_id: "01JWNB9PR0ZV8X2D3F4G5H6J00",
          at: "2026-06-01T12:00:00.000+00:00",
          status_code: 503,
          error_code: "http_status",
          tls_reason: null,
          response_excerpt: "Service Unavailable",
        },
        causes: [
          {
            status_code: 503,
            error_code: "http_status",
            tls_reason: null,
            attempts: 1,
            first_at: "2026-06-01T12:00:00.000+00:00",
            last_at: "2026-06-01T12:00:00.000+00:00",
            counts: [1],
          },
        ],
      },
    ],
  },
);
export type Incident = RowOf<typeof IncidentObject>;

/** The incidents of a subscription that have ended (contract 6.17). */
export const IncidentHistory = Type.Object(
  {
    incidents: Type.Array(
      Type.Object({
        id: Type.String({ description: "The `incident_id` of its first alert." }),
        began_at: instantAnswer(),
        ended_at: instantAnswer(),
        ended_by: literals(["recovered", "enabled"], {
          description:
            "How the incident ended: `enabled` if the subscription was enabled and no 2xx followed.",
        }),
        disabled_at: orNull(instantAnswer(), {
          description: "Time at which the subscription was disabled; null if it was not.",
        }),
        failed_attempts: Type.Integer({
          description: "Failed attempts, of which 1,000 of each outcome are counted.",
        }),
        ...causeFields,
      }),
      { description: "The newest first; `status_code` and `error_code` are the most frequent." },
    ),
  },
  { title: "IncidentHistory" },
);
export type PastIncident = RowOf<typeof IncidentHistory>["incidents"][number];

/**
 * An incident as the database stores it. If it ended because the subscription was enabled again, the next incident
 * begins immediately, and shows whether enabling has helped.
 */
interface StoredIncident {
  readonly id: string;
  readonly openedAt: Date;
  readonly beganAt: Date;
  readonly endedAt: Date | null;
  readonly endedBy: "recovered" | "enabled" | "deleted" | null;
  readonly disabledAt: Date | null;
}

/**
 * Whether an incident continues the one before it, because that one ended with `enabled` and this one began at that
 * moment. The API shows both as one.
 */
function isContinuation(
  one: Pick<StoredIncident, "openedAt">,
  before: Pick<StoredIncident, "endedBy" | "endedAt"> | undefined,
): boolean {
  return before?.endedBy === "enabled" && before.endedAt !== null && one.openedAt <= before.endedAt;
}

/** Returns the ids of the open incident and of those that it continues. */
export function openIncidentIds(
  newestFirst: readonly Omit<StoredIncident, "beganAt" | "disabledAt">[],
): string[] {
  if (newestFirst[0]?.endedAt !== null) return [];
  const end = newestFirst.findIndex((one, i) => !isContinuation(one, newestFirst[i + 1]));
  return newestFirst.slice(0, end + 1).map(({ id }) => id);
}

/**
 * Joins each incident that ended with `enabled` to the one that continues it. Returns the ended incidents, the newest
 * first.
 */
export function pastIncidents(newestFirst: readonly StoredIncident[]) {
  const joined: StoredIncident[] = [];
  for (const one of newestFirst.toReversed()) {
    const before = joined.at(-1);
    const isNext = before !== undefined && isContinuation(one, before);
    if (isNext) joined.pop();
    joined.push(
      isNext
        ? {
            ...one,
            id: before.id,
            beganAt: before.beganAt,
            disabledAt: before.disabledAt ?? one.disabledAt,
          }
        : one,
    );
  }
  return joined
    .toReversed()
    .flatMap(({ id, beganAt, endedAt, endedBy, disabledAt }) =>
      endedAt === null || endedBy === null || endedBy === "deleted"
        ? []
        : [{ id, beganAt, endedAt, endedBy, disabledAt }],
    );
}

export type FailedAttempt = Pick<
  Attempt,
  "eventId" | "startedAt" | "statusCode" | "errorCode" | "tlsReason"
>;

/** The most columns of the chart of an incident. */
const MAX_STEPS = 24;

/** Chooses the length of a step so that at most `MAX_STEPS` cover the time from `since` to `now`. */
export function incidentStepMs(since: Date, now: Date): number {
  const spanMs = Math.max(1, now.getTime() - since.getTime() + 1);
  return Math.ceil(spanMs / MAX_STEPS / BUCKET_MS) * BUCKET_MS;
}

/**
 * Groups failed attempts by their status or, without a response, by error code and TLS reason. The most frequent group
 * comes first.
 */
export function causesOf(
  attempts: readonly FailedAttempt[],
  { since, stepMs, now }: { readonly since: Date; readonly stepMs: number; readonly now: Date },
): Incident["causes"] {
  const steps = Math.floor((now.getTime() - since.getTime()) / stepMs) + 1;
  const byCause = Map.groupBy(
    attempts,
    (one) => `${one.statusCode ?? one.errorCode} ${one.tlsReason}`,
  );
  const causes = [...byCause.values()].map((ones) => {
    const times = ones.map((one) => one.startedAt.getTime());
    const counts = Array.from({ length: steps }, () => 0);
    for (const ms of times) {
      const step = Math.min(steps - 1, Math.max(0, Math.floor((ms - since.getTime()) / stepMs)));
      counts[step] = (counts[step] ?? 0) + 1;
    }
    return {
      statusCode: ones[0]?.statusCode ?? null,
      errorCode: ones[0]?.errorCode ?? null,
      tlsReason: ones[0]?.tlsReason ?? null,
      attempts: ones.length,
      firstAt: addMs(since, Math.min(...times) - since.getTime()),
      lastAt: addMs(since, Math.max(...times) - since.getTime()),
      counts,
    };
  });
  return causes.toSorted((a, b) => b.attempts - a.attempts);
}
