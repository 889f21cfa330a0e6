import type { Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

export interface Readiness {
  /**
   * The readiness as a whole. `degraded` means that the process serves requests although a dispensable check has
   * failed.
   */
  readonly status: "ok" | "degraded" | "unavailable" | "draining";
  /** Results by the name of the check; empty while the process drains, because no check runs then. */
  readonly checks: Readonly<Record<string, "ok" | "failed">>;
  /**
   * Time in ms by which this machine's clock is ahead of PostgreSQL's; absent if it is not measured. It does not affect
   * the readiness.
   */
  readonly clockSkewMs?: number | undefined;
}

/** Checks by name. A check rejects while its subject, such as PostgreSQL, Redis or a key, does not work. */
export type Checks = Readonly<Record<string, () => Promise<unknown>>>;

interface ReadinessDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly checks: Checks;
  readonly clockSkewMs?: () => number;
  /** Whether the process has received the signal to stop. */
  readonly isDraining?: () => boolean;
}

/**
 * The checks whose failure does not make the process unavailable. Redis only carries hints, so requests work without
 * it.
 */
const DISPENSABLE_CHECKS: ReadonlySet<string> = new Set(["redis"]);
/** Time in ms after which a running check counts as failed. */
const TIMEOUT_MS = 2_000;
/**
 * Time limit in ms of a dispensable check, shorter than `TIMEOUT_MS`. If Redis hangs, the whole response must still
 * arrive within the time that a proxy allows: `deploy/Caddyfile` allows 2 s and would otherwise take the process out of
 * service.
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
  return failed.every((name) => DISPENSABLE_CHECKS.has(name)) ? "degraded" : "unavailable";
}

/** Converts the readiness into the status and the body of a `/readyz` response. */
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
  const timeoutMs = DISPENSABLE_CHECKS.has(name) ? DISPENSABLE_TIMEOUT_MS : TIMEOUT_MS;
  const late = clock.sleep(timeoutMs).then(() => false);
  return (await Promise.race([passed, late])) ? "ok" : "failed";
}
