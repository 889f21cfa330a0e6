import type { Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

export interface Readiness {
  readonly status: "ok" | "unavailable" | "draining";
  /** By the name of the store; empty while draining, when nobody asks them. */
  readonly checks: Readonly<Record<string, "ok" | "failed">>;
  /** What this machine's clock is ahead of Postgres', which stops no request; absent where nobody compares them. */
  readonly clockSkewMs?: number | undefined;
}

interface ReadinessDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Store → a call that rejects while the store is away. */
  readonly stores: Readonly<Record<string, () => Promise<unknown>>>;
  readonly clockSkewMs?: () => number;
  /** Whether the process was told to stop. */
  readonly isDraining?: () => boolean;
}

/** A store that takes longer is not ready; whoever asks has a deadline too. */
const PING_TIMEOUT_MS = 2_000;

/** Whether the process can do its work (contract 2.12). */
export async function readinessOf(deps: ReadinessDeps): Promise<Readiness> {
  const clockSkewMs = deps.clockSkewMs?.();
  if (deps.isDraining?.() === true) return { status: "draining", checks: {}, clockSkewMs };
  const states = await Promise.all(
    Object.entries(deps.stores).map(
      async ([name, ping]) => [name, await stateOf(deps, name, ping)] as const,
    ),
  );
  const isReady = states.every(([, state]) => state === "ok");
  const checks = Object.fromEntries(states);
  return { status: isReady ? "ok" : "unavailable", checks, clockSkewMs };
}

/** As `/readyz` says it: status and body. */
export function showReadiness({ status, checks, clockSkewMs }: Readiness) {
  const body = { status, checks, clock_skew_ms: clockSkewMs };
  return { status: status === "ok" ? 200 : 503, body };
}

async function stateOf(
  { clock, log }: ReadinessDeps,
  store: string,
  ping: () => Promise<unknown>,
): Promise<"ok" | "failed"> {
  const answered = ping().then(
    () => true,
    (error: unknown) => {
      log.warn("store.unreachable", { store, ...errorFields(error) });
      return false;
    },
  );
  const late = clock.sleep(PING_TIMEOUT_MS).then(() => false);
  return (await Promise.race([answered, late])) ? "ok" : "failed";
}
