import type { Clock } from "../lib/clock.ts";
import { DURATION_BUCKETS_S, type Metrics } from "../lib/metrics.ts";
import type { PasswordLoad } from "../lib/password.ts";

/** Runs the answering of one request to a route, and counts it. */
export type Observe = (
  route: { readonly method: string; readonly path: string },
  work: () => Promise<Response>,
) => Promise<Response>;

interface Measured {
  readonly clock: Clock;
  readonly passwords: { load(): PasswordLoad };
  /** Absent with `RATE_LIMITS=off`. */
  readonly limiter: { readonly unchecked: number } | undefined;
}

/** The metrics of the API; answers what its routes and actions count with. */
export function apiMetrics(metrics: Metrics, { clock, passwords, limiter }: Measured) {
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
    observe: observeRequests(metrics, clock),
    countSignIn: (result: string) => void (signIns({ result }).value += 1),
  };
}

/** By the pattern of the path: the ids in it would be labels without end. */
function observeRequests(metrics: Metrics, clock: Clock): Observe {
  const durations = metrics.histogram(
    {
      name: "reviewrelay_http_request_duration_seconds",
      help: "Requests by method, route and class of the status.",
    },
    DURATION_BUCKETS_S,
  );
  return async ({ method, path }, work) => {
    const startedMs = clock.monotonicMs();
    const response = await work();
    const status = `${Math.floor(response.status / 100)}xx`;
    durations({ method, route: path, status }).observe((clock.monotonicMs() - startedMs) / 1_000);
    return response;
  };
}
