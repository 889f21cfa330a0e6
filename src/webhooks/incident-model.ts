import { Type, type Static } from "@sinclair/typebox";

import { literals } from "../http/literals.ts";
import { instantAnswer } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";
import { ALERT_KINDS, type AlertKind } from "../outbox/alert.ts";
import type { Cause, TroubleAttempt } from "./incident.ts";
import { instantOrNull, orNull } from "./model.ts";

/** Of the trouble that a subscription is in; of none, without a beginning. */
export interface Incident {
  readonly since: Date | null;
  readonly lastAnswer: (TroubleAttempt & { readonly responseExcerpt: string | null }) | null;
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
      description: "When the first attempt failed; null if none does.",
    }),
    last_answer: orNull(
      Type.Object({
        event_id: Type.String(),
        at: instantAnswer(),
        ...cause,
        response_excerpt: orNull(Type.String()),
      }),
      { description: "How the last attempt ended that failed." },
    ),
    step: Type.Integer({ description: "Seconds per count." }),
    causes: Type.Array(
      Type.Object({
        ...cause,
        attempts: Type.Integer(),
        first_at: instantAnswer(),
        last_at: instantAnswer(),
        counts: Type.Array(Type.Integer(), { description: "One per step since `since`." }),
      }),
      { description: "Of the last 1,000 attempts that failed since then." },
    ),
    alerts: Type.Array(Type.Object({ kind: literals(ALERT_KINDS), raised_at: instantAnswer() }), {
      description: "What was told of it.",
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
