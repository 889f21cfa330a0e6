import type { Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

export interface Readiness {
  /** The readiness as a whole. `degraded`: the process serves requests, but a dispensable check has failed. */
  readonly status: "ok" | "degraded" | "unavailable" | "draining";
  /** Results by the name of the check; empty while the process drains, because no check runs then. */
  readonly checks: Readonly<Record<string, "ok" | "failed">>;
  /**
   * The milliseconds by which this machine's clock is ahead of PostgreSQL. They have no effect on readiness; absent
   * if not measured.
   */
  readonly clockSkewMs?: number | undefined;
}

/** Checks by name; each rejects while its subject, such as PostgreSQL, Redis or a key, fails. */
export type Checks = Readonly<Record<string, () => Promise<unknown>>>;

interface ReadinessDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly checks: Checks;
  readonly clockSkewMs?: () => number;
  /** Whether the process has received the signal to stop. */
  readonly isDraining?: () => boolean;
}

/** The checks that a process can do without. Redis only carries hints, and its loss must not stop a request. */
const DISPENSABLE: ReadonlySet<string> = new Set(["redis"]);
/** A check that takes longer than this number of milliseconds counts as failed. */
const TIMEOUT_MS = 2_000;
/**
 * The shorter time limit in milliseconds of a dispensable check. A Redis that hangs must not use up the time that a
 * proxy allows for the whole response: `deploy/Caddyfile` allows 2 s and would take the process out of service.
 */
const DISPENSABLE_TIMEOUT_MS = 500;

/** Runs the checks that decide whether the process can work (contract 2.12). */
export async function readinessOf(deps: ReadinessDeps): Promise<Readiness> {
  const clockSkewMs = deps.clockSkewMs?.();
  if (deps.isDraining?.() === true) return { status: "draining", checks: {}, clockSkewMs };
  const results = await Promise.all(
    Object.entries(deps.checks).map(
      async ([name, check]) => [name, await resultOf(deps, name, check)] as const,
    ),
  );
  const checks = Object.fromEntries(results);
  return { status: statusOf(checks), checks, clockSkewMs };
}

function statusOf(checks: Readiness["checks"]): Readiness["status"] {
  const failed = Object.keys(checks).filter((name) => checks[name] === "failed");
  if (failed.length === 0) return "ok";
  return failed.every((name) => DISPENSABLE.has(name)) ? "degraded" : "unavailable";
}

/** Converts the readiness into status and body of `/readyz`. */
export function showReadiness({ status, checks, clockSkewMs }: Readiness) {
  const body = { status, checks, clock_skew_ms: clockSkewMs };
  return { status: status === "ok" || status === "degraded" ? 200 : 503, body };
}

async function resultOf(
  { clock, log }: ReadinessDeps,
  name: string,
  check: () => Promise<unknown>,
): Promise<"ok" | "failed"> {
  const passed = check().then(
    () => true,
    (error: unknown) => {
      log.warn("readiness.failed", { check: name, ...errorFields(error) });
      return false;
    },
  );
  const timeoutMs = DISPENSABLE.has(name) ? DISPENSABLE_TIMEOUT_MS : TIMEOUT_MS;
  const late = clock.sleep(timeoutMs).then(() => false);
  return (await Promise.race([passed, late])) ? "ok" : "failed";
}
