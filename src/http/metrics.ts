import { type DocumentDecoration, Elysia } from "elysia";

import type { Clock } from "../lib/clock.ts";
import type { Load } from "../lib/fair-queue.ts";
import { DURATION_BUCKETS_S, type Histogram, type Metrics } from "../lib/metrics.ts";
import { type Readiness, showReadiness } from "../lib/readiness.ts";
import { BASE_PATH } from "./access.ts";
import { requestStateOf } from "./request-state.ts";

/** Adds a request to the metrics. */
export type CountRequest = (request: {
  readonly method: string;
  /**
   * The pattern of the request's path, with or without the base path. Real paths contain ids and would create labels
   * without limit.
   */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}) => void;

interface Measured {
  readonly passwords: { load(): Load };
  /** The rate limiter; undefined with `RATE_LIMITS=off`. */
  readonly limiter: { readonly unchecked: number } | undefined;
}

/** Declares the metrics of the API and returns the counters for its routes and actions. */
export function apiMetrics(metrics: Metrics, { passwords, limiter }: Measured) {
  const signIns = metrics.counter({
    name: "reviewrelay_sign_ins_total",
    help: "Passwords that were checked, by result: right, wrong, or refused because locked.",
  });
  metrics.read(
    "counter",
    {
      name: "reviewrelay_rate_limit_unchecked_total",
      help: "Requests that passed uncounted because Redis was away.",
    },
    () => [[{}, limiter?.unchecked ?? 0]],
  );
  metrics.read(
    "gauge",
    { name: "reviewrelay_password_hashes", help: "Password hashes at hand, by state." },
    () => {
      const { running, waiting } = passwords.load();
      return [
        [{ state: "running" }, running],
        [{ state: "waiting" }, waiting],
      ];
    },
  );
  return {
    countRequest: countRequests(metrics),
    countSignIn: (result: string) => void (signIns({ result }).value += 1),
  };
}

function countRequests(metrics: Metrics): CountRequest {
  const durations = metrics.histogram(
    {
      name: "reviewrelay_http_request_duration_seconds",
      help: "Requests by method, route and class of the status.",
    },
    DURATION_BUCKETS_S,
  );
  // Histograms are kept by their labels, because rendering the labels costs more than counting.
  const known = new Map<string, Histogram>();
  return ({ method, route, status, durationMs }) => {
    const key = `${status} ${method} ${route}`;
    let one = known.get(key);
    if (one === undefined) {
      one = durations({
        method,
        route: withoutBase(route),
        status: `${Math.floor(status / 100)}xx`,
      });
      known.set(key, one);
    }
    one.observe(durationMs / 1_000);
  };
}

/** Function that is called with a response just before it is sent. */
export type Answered = (request: Request, route: string | undefined, status: number) => void;

/** Counts every request that reached a route, whether the request succeeded or not. */
export function answerCounter(clock: Clock, count: CountRequest): Answered {
  return (request, route, status) => {
    // A request with an unsupported method is not counted, because it has no route and its method may be any text.
    if (route === undefined || status === METHOD_NOT_ALLOWED) return;
    const durationMs = clock.monotonicMs() - requestStateOf(request).startedMs;
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
        summary: "Tell that the process is alive",
        description: "Does not check its stores.",
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

const object = { "application/json": { schema: { type: "object" } } } as const;
const READYZ_DETAIL: DocumentDecoration = {
  operationId: "getReadyz",
  summary: "Tell whether the process is ready",
  description: "Not ready while PostgreSQL is unreachable, a key is missing, or it drains.",
  responses: {
    "200": { description: "Ready; `degraded` without Redis.", content: object },
    "503": { description: "Not ready; `checks` says why.", content: object },
  },
};
