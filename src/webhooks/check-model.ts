import { Type } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, orNull } from "../http/text.ts";

const checkId = Type.String({ description: "ULID of the check." });

export const RequestedCheck = Type.Object(
  { check_id: checkId },
  { title: "RequestedCheck", examples: [{ check_id: "01JWNB9PR0ZV8X2D3F4G5H6J00" }] },
);

const FindingObject = Type.Object(
  {
    code: Type.String({
      description: "The rule, which the guide “Going live” explains.",
      examples: ["unknown_field"],
    }),
    severity: literals(["fault", "warning"], {
      description: "A warning does not count in the report.",
    }),
    passed: orNull(Type.Boolean(), {
      description: "Null if another finding left it undecided.",
    }),
    status_code: orNull(Type.Integer(), {
      description: "Status of the deciding answer.",
    }),
    error_code: orNull(Type.String(), {
      description: "Cause of a missing answer, as in an attempt.",
    }),
    tls_reason: orNull(Type.String()),
    duration_ms: orNull(Type.Integer()),
    advice: orNull(Type.String(), {
      description: "What to change; null unless `passed` is false.",
    }),
  },
  { title: "CheckFinding" },
);

/** The report of a check (contract 6.23). */
export const CheckReport = Type.Object(
  {
    id: checkId,
    state: literals(["pending", "running", "done", "interrupted"], {
      description: "Only a report that is `done` has findings.",
    }),
    reason: orNull(Type.String(), {
      description: "Cause: process_ended, subscription_changed, secret_unreadable or own_failure.",
    }),
    passed: orNull(Type.Boolean(), {
      description: "Whether no fault was found; null unless `state` is `done`.",
    }),
    created_at: instantAnswer(),
    started_at: orNull(instantAnswer()),
    finished_at: orNull(instantAnswer(), {
      description: "Time at which it was done or interrupted.",
    }),
    findings: Type.Array(FindingObject, { description: "The findings, in a fixed order." }),
  },
  {
    title: "CheckReport",
    examples: [
      {
        id: "01JWNB9PR0ZV8X2D3F4G5H6J00",
        state: "done",
        reason: null,
        passed: false,
        created_at: "2026-06-01T12:00:00.000+00:00",
        started_at: "2026-06-01T12:00:03.000+00:00",
        finished_at: "2026-06-01T12:00:04.000+00:00",
        findings: [
          {
            code: "unknown_field",
            severity: "fault",
            passed: false,
            status_code: 422,
            error_code: null,
            tls_reason: null,
            duration_ms: 84,
            advice: "Ignore unknown fields of the body.",
          },
        ],
      },
    ],
  },
);
export type CheckReport = RowOf<typeof CheckReport>;
