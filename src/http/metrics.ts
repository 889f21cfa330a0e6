import { Type } from "@sinclair/typebox";
import { type DocumentDecoration, Elysia } from "elysia";
import { Counter, Histogram, type Registry } from "prom-client";

import type { Clock } from "../lib/clock.ts";
import type { Load } from "../lib/fair-queue.ts";
import { DURATION_BUCKETS_S, readCounter, readGauge } from "../lib/metrics.ts";
import { type Readiness, showReadiness } from "../lib/readiness.ts";
import { BASE_PATH } from "./access.ts";
import { jsonResponse } from "./openapi/schemas.ts";
import { literals } from "./principal.ts";
import type { RequestState } from "./request-state.ts";

/** Adds a request to the metrics. */
export type CountRequest = (request: {
  readonly method: string;
  /**
   * The pattern of the request's path, with or without the base path. Real paths contain ids and would create an
   * unlimited number of labels.
   */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}) => void;

/** The numbers of inbox actions that were processed, by result. */
interface InboxResults {
  readonly recorded: number;
  readonly unchanged: number;
  readonly duplicate: number;
}
export type CountInbox = (results: InboxResults) => void;

interface MeasuredParts {
  readonly passwords: { load(): Load };
  /** The rate limiter; undefined with `RATE_LIMITS=off`. */
  readonly limiter: { readonly unchecked: number } | undefined;
}

/** Declares the metrics of the API and returns the counters for requests, sign-ins and the inbox. */
export function apiMetrics(registry: Registry, { passwords, limiter }: MeasuredParts) {
  const signIns = new Counter({
    name: "reviewrelay_sign_ins_total",
    help: "Passwords that were checked, by result: right, wrong, or refused because locked.",
    labelNames: ["result"],
    registers: [registry],
  });
  const inbox = new Counter({
    name: "reviewrelay_inbox_actions_total",
    help: "Actions of the inbox that were processed, by result: recorded, unchanged, or duplicate.",
    labelNames: ["result"],
    registers: [registry],
  });
  const countInbox: CountInbox = (results) => {
    for (const [result, count] of Object.entries(results)) inbox.inc({ result }, count);
  };
  // A counter with labels is exported only after its first increment, so each label is incremented by 0.
  countInbox({ recorded: 0, unchanged: 0, duplicate: 0 });
  readCounter(
    registry,
    {
      name: "reviewrelay_rate_limit_unchecked_total",
      help: "Requests that the rate limit did not count because Redis was unavailable.",
    },
    () => [[{}, limiter?.unchecked ?? 0]],
  );
  readGauge(
    registry,
    {
      name: "reviewrelay_password_hashes",
      help: "Password hashes in progress, by state: running or waiting.",
      labelNames: ["state"],
    },
    () => {
      const { running, waiting } = passwords.load();
      return [
        [{ state: "running" }, running],
        [{ state: "waiting" }, waiting],
      ];
    },
  );
  return {
    countRequest: countRequests(registry),
    countSignIn: (result: string) => signIns.inc({ result }),
    countInbox,
  };
}

function countRequests(registry: Registry): CountRequest {
  const durations = new Histogram({
    name: "reviewrelay_http_request_duration_seconds",
    help: "Requests by method, route and class of the status.",
    labelNames: ["method", "route", "status"],
    buckets: DURATION_BUCKETS_S,
    registers: [registry],
  });
  return ({ method, route, status, durationMs }) => {
    const labels = { method, route: withoutBase(route), status: `${Math.floor(status / 100)}xx` };
    durations.observe(labels, durationMs / 1_000);
  };
}

/** A request whose response is about to be sent. */
interface AnsweredRequest {
  readonly request: Request;
  readonly requestState: RequestState;
  /** The pattern of the path; undefined for an unknown path. */
  readonly route: string | undefined;
}

/** Function that is called with a request and the status of its response, just before the response is sent. */
export type Answered = (answered: AnsweredRequest, status: number) => void;

/** Counts every request that reached a route, whether the request succeeded or not. */
export function answerCounter(clock: Clock, count: CountRequest): Answered {
  return ({ request, requestState, route }, status) => {
    // A request with an unsupported method is not counted, because it has no route and its method may be any text.
    if (route === undefined || status === METHOD_NOT_ALLOWED) return;
    const durationMs = clock.monotonicMs() - requestState.startedMs;
    count({ method: request.method, route, status, durationMs });
  };
}

const METHOD_NOT_ALLOWED = 405;

function withoutBase(route: string): string {
  return route.startsWith(`${BASE_PATH}/`) ? route.slice(BASE_PATH.length) : route;
}

/**
 * Serves `/healthz`, which reports that the process is alive, and `/readyz`, which reports whether it can work
 * (contract 2.12).
 */
export function health(readiness: () => Promise<Readiness>) {
  return new Elysia({ name: "health", tags: ["Documents"] })
    .get("/healthz", () => ({ status: "ok" }), {
      detail: {
        operationId: "getHealthz",
        summary: "Check that the process is alive",
        description: "Does not check PostgreSQL and Redis.",
        responses: { "200": jsonResponse("The process is alive.", LIVENESS) },
      },
    })
    .get(
      "/readyz",
      async ({ set }) => {
        const { status, body } = showReadiness(await readiness());
        set.status = status;
        return body;
      },
      { detail: READYZ_DETAIL },
    );
}

const LIVENESS = Type.Object(
  { status: Type.Literal("ok", { description: "Always `ok`." }) },
  { title: "Liveness" },
);
const READINESS = Type.Object(
  {
    status: literals(["ok", "degraded", "unavailable", "draining"], {
      description: "Whether the process can do its work.",
    }),
    checks: Type.Record(Type.String(), literals(["ok", "failed"]), {
      description: "Result of each check by name; empty while the process drains.",
      examples: [{ postgres: "ok", redis: "ok", master_key: "ok" }],
    }),
    clock_skew_ms: Type.Optional(
      Type.Number({
        description: "Milliseconds by which the clock is ahead of PostgreSQL's.",
        examples: [2],
      }),
    ),
  },
  { title: "Readiness" },
);
const READYZ_DETAIL: DocumentDecoration = {
  operationId: "getReadyz",
  summary: "Check whether the process is ready",
  description:
    "Not ready while PostgreSQL is unreachable, a key is missing, or the process drains.",
  responses: {
    "200": jsonResponse("Ready; `degraded` without Redis.", READINESS),
    "503": jsonResponse("Not ready; `checks` has the reason.", READINESS),
  },
};
