import type { Db } from "../../db/client.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Clock } from "../lib/clock.ts";
import { recordAudit } from "./queries/audit.ts";
import type { AuditAction } from "./audit-model.ts";

/** Time in ms after an audit row of a failed attempt, during which repeats of the same failure are only counted. */
const COUNTED_MS = 60_000;
/**
 * Highest number of different failures of one audit action that get separate rows within `COUNTED_MS`. Further
 * failures share one row whose details are null.
 */
const MAX_DISTINCT = 100;

export interface Failure {
  readonly action: Extract<
    AuditAction,
    "CLIENT_AUTH_FAILED" | "OTP_FAILED" | "PROVIDER_AUTH_FAILED"
  >;
  /** The details of the failure in the audit log. Failures with equal details count as repeats of each other. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Recorded extends Failure {
  untilMs: number;
  repeats: number;
}

/**
 * Audits failed attempts of unauthenticated clients without writing a row for each guess. The first failure is
 * written immediately. Repeats within the next minute are counted, and the count is stored in the next row of the
 * same failure. If no such failure follows, a separate row with the count is written together with the next failure
 * of any kind. Each process counts separately.
 */
export class FailureAudit {
  readonly #deps: { readonly db: Db; readonly clock: Clock };
  /** Recent failures by action and details, in the order in which their audit rows were written. */
  readonly #recorded: Record<Failure["action"], Map<string, Recorded>> = {
    CLIENT_AUTH_FAILED: new Map(),
    OTP_FAILED: new Map(),
    PROVIDER_AUTH_FAILED: new Map(),
  };

  constructor(deps: { readonly db: Db; readonly clock: Clock }) {
    this.#deps = deps;
  }

  async record(failure: Failure, requestContext: RequestContext): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const ofAction = this.#recorded[failure.action];
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined && nowMs < known.untilMs) {
      known.repeats++;
      return;
    }
    ofAction.delete(keyOf(failure));
    const expired = Object.values(this.#recorded).flatMap((some) => removeExpired(some, nowMs));
    const counted = ofAction.size < MAX_DISTINCT ? failure : withoutDetails(failure);
    const same = ofAction.get(keyOf(counted));
    // The counters are updated before the first `await`, so that only one of several concurrent failures writes the
    // audit row.
    if (same !== undefined) same.repeats++;
    else
      await this.#begin(
        { ...counted, untilMs: nowMs + COUNTED_MS, repeats: 0 },
        known,
        requestContext,
      );
    for (const one of expired) await this.#write(one, null);
  }

  /**
   * Writes the first audit row of a failure. If the write fails, the next equal failure becomes the first and counts
   * this one as a repeat.
   */
  async #begin(
    first: Recorded,
    known: Recorded | undefined,
    requestContext: RequestContext,
  ): Promise<void> {
    this.#recorded[first.action].set(keyOf(first), first);
    const before = known?.repeats ?? 0;
    try {
      await this.#write({ ...first, repeats: before }, requestContext);
    } catch (error) {
      first.untilMs = Number.NEGATIVE_INFINITY;
      first.repeats += before + 1;
      throw error;
    }
  }

  async #write(
    { action, details, repeats }: Omit<Recorded, "untilMs">,
    requestContext: RequestContext | null,
  ) {
    await recordAudit(this.#deps.db, {
      at: this.#deps.clock.now(),
      action,
      actor: null,
      requestContext,
      details: { ...details, ...(repeats > 0 && { repeats }) },
    });
  }
}

const keyOf = ({ details }: Failure): string => JSON.stringify(details);

function withoutDetails({ action, details }: Failure): Failure {
  return { action, details: Object.fromEntries(Object.keys(details).map((name) => [name, null])) };
}

/** Removes remembered failures whose minute is over. Returns those with repeats that no other audit row will report. */
function removeExpired(recorded: Map<string, Recorded>, nowMs: number): Recorded[] {
  const expired: Recorded[] = [];
  for (const [key, one] of recorded) {
    if (nowMs < one.untilMs) break;
    recorded.delete(key);
    if (one.repeats > 0) expired.push(one);
  }
  return expired;
}
