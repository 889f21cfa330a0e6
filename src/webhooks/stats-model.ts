import { Type, type Static } from "@sinclair/typebox";

import type { ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import type { RowOf } from "../http/shown.ts";
import { QUARANTINE_REASONS, type QuarantinedLane } from "../outbox/quarantined-lane.ts";
import { literals } from "../http/principal.ts";
import { instantAnswer, instantText, orNull } from "../http/text.ts";
import { addMs, fromMs, parseInstant } from "../lib/clock.ts";
import { CONDITIONS } from "./stats.ts";
import { BUCKET_MS, bucketFloor, type Range } from "./stats.ts";

const milliseconds = orNull(Type.Number({ minimum: 0 }));
const latency = Type.Object(
  { p50: milliseconds, p95: milliseconds, p99: milliseconds },
  {
    title: "Latency",
    examples: [{ p50: 84, p95: 210, p99: 640 }],
    description: "Durations in milliseconds.",
  },
);

/** A quarantined lane (contract 6.17). */
export const QUARANTINED = {
  reason: literals(QUARANTINE_REASONS),
  /** The first event of the lane, if it is known. */
  event_id: orNull(Type.String()),
  sequence: orNull(Type.Integer()),
  review_id: orNull(Type.Integer()),
  since: instantAnswer(),
};
const quarantinedLane = Type.Object(QUARANTINED);

/**
 * The health of a subscription (contract 6.17). `expired_24h` counts events that were held for longer than the
 * retention time (contract 7.9).
 */
export const HealthObject = Type.Object(
  {
    condition: orNull(literals(CONDITIONS), {
      description: "How well deliveries work; null while the subscription is disabled.",
    }),
    pending: Type.Integer({
      description:
        "Queued events. Exact up to 10,000; above that each further sequence number counts as an event.",
    }),
    held: Type.Integer({ description: "Queued events while the subscription is disabled." }),
    waiting_for_batch: Type.Integer(),
    oldest_pending_age_s: orNull(Type.Integer(), {
      description: "Age of the first queued event in seconds.",
    }),
    blocked_by: orNull(Type.String(), {
      description: "The event that waits for a retry and blocks later events.",
    }),
    blocked_since: orNull(instantAnswer()),
    blocked_attempts: Type.Integer({
      description: "Failed attempts of that event in this round; 0 without one.",
    }),
    last_success_at: orNull(instantAnswer()),
    success_rate_1h: orNull(Type.Number({ minimum: 0, maximum: 1 }), {
      description: "The share of attempts of the last hour answered 2xx; null without attempts.",
    }),
    success_rate_24h: orNull(Type.Number({ minimum: 0, maximum: 1 }), {
      description: "The share of attempts answered 2xx; null without attempts.",
    }),
    latency_ms_24h: latency,
    expired_24h: Type.Integer({
      description: "Events dropped because they were held for longer than the retention time.",
    }),
    quarantined: Type.Array(quarantinedLane, {
      description: "Lanes that are quarantined because of a problem in this service.",
    }),
    outage_since: orNull(instantAnswer(), {
      description:
        "Start of an outage in which the service cannot reach receivers; null without one. Attempts wait and do not count as failures.",
    }),
    first_failure: orNull(
      Type.Object({
        event_id: Type.String(),
        at: instantAnswer(),
        status_code: orNull(Type.Integer()),
        error_code: orNull(Type.String()),
        tls_reason: orNull(Type.String()),
      }),
      { description: "First of the current consecutive permanent failures." },
    ),
  },
  {
    title: "Health",
    examples: [
      {
        condition: "healthy",
        pending: 3,
        held: 0,
        waiting_for_batch: 0,
        oldest_pending_age_s: 12,
        blocked_attempts: 0,
        last_success_at: "2026-06-01T12:00:00.000+00:00",
        success_rate_1h: 1,
        success_rate_24h: 0.998,
        expired_24h: 0,
        quarantined: [],
        outage_since: null,
        first_failure: null,
      },
    ],
  },
);
export type Health = RowOf<typeof HealthObject>;

/** Converts a quarantined lane from the form in which a dispatcher publishes it. */
export const quarantinedOf = (lane: QuarantinedLane): Health["quarantined"][number] => ({
  reason: lane.reason,
  eventId: lane.event_id,
  sequence: lane.sequence,
  reviewId: lane.review_id,
  since: parseInstant(lane.since) ?? fromMs(0),
});

const MAX_STEP_S = 86_400;
const STEP_S = BUCKET_MS / 1000;
const DEFAULT_STEP_S = 3_600;
const DEFAULT_SPAN_MS = 86_400_000;
/** The longest range of one request in days (contract 6.18). */
const MAX_SPAN_DAYS = 31;
const MAX_SPAN_MS = MAX_SPAN_DAYS * 86_400_000;
/**
 * 31 December 9999 in milliseconds since the epoch. If it is rounded up to a whole step, its year still has four
 * digits.
 */
const LAST_MS = 253_402_214_400_000;
/** The most points of one response, more than a chart has pixels for. */
const MAX_POINTS = 1_000;

export const statsQuery = Type.Object({
  since: Type.Optional(instantText()),
  until: Type.Optional(instantText()),
  step: Type.Optional(
    Type.Integer({
      minimum: STEP_S,
      maximum: MAX_STEP_S,
      multipleOf: STEP_S,
      explain: `must be a number of seconds from ${STEP_S} to ${MAX_STEP_S}, a multiple of ${STEP_S}`,
      description: "Seconds per point.",
    }),
  ),
  by: Type.Optional(
    Type.Literal("event", { explain: "must be event", description: "Adds `events` to points." }),
  ),
});

export const streamQuery = Type.Object({
  include: Type.Optional(
    Type.Literal("body", {
      explain: "must be body",
      description: "Streams every attempt as `Attempt` instead of a summary.",
    }),
  ),
});

type StatsQuery = Static<typeof statsQuery>;

export const StatsObject = Type.Object(
  {
    since: instantAnswer(),
    until: instantAnswer(),
    step: Type.Integer(),
    points: Type.Array(
      Type.Object({
        at: instantAnswer(),
        successes: Type.Integer({ description: "Attempts answered 2xx." }),
        failures: Type.Integer({ description: "Attempts not answered 2xx." }),
        latency_ms: latency,
        backlog: Type.Integer({
          description: "The most events that were queued at once, as sampled.",
        }),
        events: Type.Optional(
          Type.Record(Type.String(), Type.Integer(), {
            description: "Attempts by event, with `by=event`; many are sampled.",
          }),
        ),
      }),
    ),
  },
  {
    title: "Stats",
    examples: [
      {
        step: 3_600,
        points: [
          {
            at: "2026-06-01T12:00:00.000+00:00",
            successes: 118,
            failures: 2,
            latency_ms: { p50: 84, p95: 210, p99: 640 },
            backlog: 3,
          },
        ],
      },
    ],
  },
);
export type StatsPoint = RowOf<typeof StatsObject>["points"][number];

type StepRange = Omit<Range, "origin">;

/**
 * Reads the range of a query; the default is a day in steps of an hour. A part of the range is absent if its field is
 * invalid.
 */
function rangeOf(query: ValidParts<StatsQuery>, now: Date): Partial<StepRange> {
  const until = "until" in query ? parseInstant(query.until) : now;
  const since =
    "since" in query ? parseInstant(query.since) : until && addMs(until, -DEFAULT_SPAN_MS);
  const step = "step" in query ? query.step : DEFAULT_STEP_S;
  return {
    // The range is limited to 1970 to 9999: ULIDs begin in 1970, and neither they nor PostgreSQL represent all later
    // years that an instant may have.
    ...(until && { until: fromMs(Math.min(until.getTime(), LAST_MS)) }),
    ...(since && { since: fromMs(Math.max(since.getTime(), 0)) }),
    ...(step !== undefined && { stepMs: step * 1000 }),
  };
}

/** Extends a range so that it begins and ends with whole steps. */
function wholeSteps({ since, until, stepMs }: StepRange): StepRange {
  const end = bucketFloor(addMs(until, stepMs - 1), stepMs);
  return { since: bucketFloor(since, stepMs), until: end, stepMs };
}

export function statsErrors(query: ValidParts<StatsQuery>, now: Date): RuleErrors {
  const { since, until, stepMs } = rangeOf(query, now);
  if (since === undefined || until === undefined) return {};
  const whole = stepMs === undefined ? undefined : wholeSteps({ since, until, stepMs });
  const points = whole && (whole.until.getTime() - whole.since.getTime()) / whole.stepMs;
  const isLong = until.getTime() - since.getTime() > MAX_SPAN_MS;
  const tooLong = isLong ? `must be at most ${MAX_SPAN_DAYS} days before until` : undefined;
  const isTooFine = points !== undefined && points > MAX_POINTS;
  return {
    since: since >= until ? "must be earlier than until" : tooLong,
    step: isTooFine ? `must leave at most ${MAX_POINTS} points between since and until` : undefined,
  };
}

/** Reads the range of a query that has passed `statsErrors`. */
export function readStatsRange(query: StatsQuery, now: Date) {
  const { since, until, stepMs } = rangeOf(query, now);
  if (since === undefined || until === undefined || stepMs === undefined)
    throw new Error("A range passed its schema and cannot be read.");
  const whole = wholeSteps({ since, until, stepMs });
  return { ...whole, origin: whole.since, isByEvent: query.by === "event" };
}
