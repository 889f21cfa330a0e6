import type { Db } from "../../db/client.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Clock } from "../lib/clock.ts";
import { type AuditActor, recordAudit } from "./queries/audit.ts";
import type { AuditAction } from "./audit-model.ts";

/**
 * By audit action: the time in ms after the row of a failure during which repeats are only counted, and the highest number
 * of different failures that get separate rows within that time. Further failures share one row whose details are null.
 */
const LIMITS = {
  CLIENT_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  OTP_FAILED: { countedMs: 60_000, distinct: 100 },
  PROVIDER_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  // A refused caller is signed in, so that strangers cannot use up the number.
  AUTHZ_DENIED: { countedMs: 3_600_000, distinct: 10_000 },
} as const satisfies Partial<Record<AuditAction, object>>;

export interface Failure {
  readonly action: keyof typeof LIMITS;
  /** The caller whose request was refused; absent if the client is not authenticated. */
  readonly actor?: AuditActor;
  /** The details of the failure. Failures of one token with equal details count as repeats of each other. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Recorded extends Failure {
  untilMs: number;
  repeats: number;
}

/**
 * Audits refused requests and failed attempts of unauthenticated clients without writing a row for each. The first
 * failure is written immediately. Repeats within the time of `LIMITS` are counted, and the count is stored in the next row
 * of the same failure. If no such failure follows, a separate row with the count is written together with the next failure
 * of any kind. Each process counts separately.
 */
export class FailureAudit {
  readonly #deps: { readonly db: Db; readonly clock: Clock };
  /** Recent failures by action and details, in the order in which their audit rows were written. */
  readonly #recorded: Record<Failure["action"], Map<string, Recorded>> = {
    CLIENT_AUTH_FAILED: new Map(),
    OTP_FAILED: new Map(),
    PROVIDER_AUTH_FAILED: new Map(),
    AUTHZ_DENIED: new Map(),
  };

  constructor(deps: { readonly db: Db; readonly clock: Clock }) {
    this.#deps = deps;
  }

  async record(failure: Failure, requestContext: RequestContext): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const { countedMs, distinct } = LIMITS[failure.action];
    const ofAction = this.#recorded[failure.action];
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined && nowMs < known.untilMs) {
      known.repeats++;
      return;
    }
    ofAction.delete(keyOf(failure));
    const expired = Object.values(this.#recorded).flatMap((some) => removeExpired(some, nowMs));
    const counted = ofAction.size < distinct ? failure : withoutDetails(failure);
    const same = ofAction.get(keyOf(counted));
    // The counters are updated before the first `await`, so that only one of several concurrent failures writes the
    // audit row.
    if (same !== undefined) same.repeats++;
    else
      await this.#begin(
        { ...counted, untilMs: nowMs + countedMs, repeats: 0 },
        known,
        requestContext,
      );
    // The deletion of a company may have removed the user since the first row.
    for (const { actor, ...one } of expired)
      await this.#write({ ...one, ...(actor && { actor }) }, null).catch(() =>
        this.#write(one, null),
      );
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
    {
      action,
      actor = null,
      details,
      repeats,
    }: Omit<Recorded, "untilMs" | "actor"> & { actor?: AuditActor | null },
    requestContext: RequestContext | null,
  ) {
    await recordAudit(this.#deps.db, {
      at: this.#deps.clock.now(),
      action,
      actor,
      requestContext,
      details: { ...details, ...(repeats > 0 && { repeats }) },
    });
  }
}

const keyOf = ({ actor, details }: Failure): string => JSON.stringify([actor?.jti, details]);

function withoutDetails({ action, details }: Failure): Failure {
  return { action, details: Object.fromEntries(Object.keys(details).map((name) => [name, null])) };
}

/** Removes remembered failures whose time is over. Returns those with repeats that no other audit row will report. */
function removeExpired(recorded: Map<string, Recorded>, nowMs: number): Recorded[] {
  const expired: Recorded[] = [];
  for (const [key, one] of recorded) {
    if (nowMs < one.untilMs) break;
    recorded.delete(key);
    if (one.repeats > 0) expired.push(one);
  }
  return expired;
}
