import type { Db } from "../../db/client.ts";
import { isReferenceViolation } from "../../db/errors.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { type AuditActor, recordAudit } from "./queries.ts";
import type { AuditAction } from "./model.ts";

/**
 * Limits by audit action. `countedMs` is the time in ms after the row of a failure during which repeats are only
 * counted. `distinct` is the maximum number of different failures that get separate rows within that time. Further
 * failures share one row whose details are null.
 */
const FAILURE_LIMITS = {
  AUTH_LOGIN_FAILED: { countedMs: 60_000, distinct: 100 },
  AUTH_LOCKED: { countedMs: 60_000, distinct: 100 },
  SSO_REFUSED: { countedMs: 60_000, distinct: 100 },
  CLIENT_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  OTP_FAILED: { countedMs: 60_000, distinct: 100 },
  PROVIDER_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  // `distinct` can be large, because only signed-in callers cause these failures.
  AUTHZ_DENIED: { countedMs: 3_600_000, distinct: 10_000 },
} as const satisfies Partial<Record<AuditAction, object>>;

/** Interval in ms at which all counts of repeats are written. */
const WRITE_EVERY_MS = 60_000;

export interface Failure {
  readonly action: keyof typeof FAILURE_LIMITS;
  /** The caller whose request was refused; absent if the caller is unknown. */
  readonly actor?: AuditActor;
  /** The details of the failure. Failures of the same actor with equal details count as repeats. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface RecordedFailure extends Failure {
  untilMs: number;
  repeats: number;
}

/** Repeats of a failure that are not in an audit row yet. */
type CountedRepeats = Failure & Pick<RecordedFailure, "repeats">;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Audits refused requests and failed sign-ins of unauthenticated clients without writing a row for each. The first
 * failure is written immediately. Repeats within `countedMs` are counted, and the next row of the same failure contains
 * the count. If no such failure follows, a separate row contains it. That row is written with the next failure of any
 * kind, every minute, and when the process stops. Each process counts separately.
 */
export class FailureAudit {
  readonly #deps: Deps;
  /** Recent failures by action and `keyOf`, in the order in which their audit rows were written. */
  readonly #recorded = new Map<Failure["action"], Map<string, RecordedFailure>>();
  /** The last write of all counts; the next one waits for it. */
  #flushed: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async record(failure: Failure, requestContext: RequestContext): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const { countedMs, distinct } = FAILURE_LIMITS[failure.action];
    const ofAction = this.#of(failure);
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined && nowMs < known.untilMs) {
      known.repeats++;
      return;
    }
    ofAction.delete(keyOf(failure));
    const expired = this.#drainCounts(nowMs, ({ untilMs }) => untilMs <= nowMs);
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
    await this.#writeCounts(expired);
  }

  /**
   * Writes all counts every minute until the signal aborts, so that a killed process loses at most the counts of a
   * minute.
   */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(WRITE_EVERY_MS, signal);
      await this.flush().catch((error: unknown) =>
        log.warn("audit.write_failed", errorFields(error)),
      );
    }
  }

  /**
   * Writes all counts that are not in an audit row yet, after the writes that have already begun. A stopping process
   * waits for this method before it closes its database connections.
   */
  flush(): Promise<void> {
    const flushed = this.#flushed.then(() =>
      this.#writeCounts(this.#drainCounts(this.#deps.clock.monotonicMs(), () => true)),
    );
    this.#flushed = flushed.catch(() => {});
    return flushed;
  }

  #of({ action }: Pick<Failure, "action">): Map<string, RecordedFailure> {
    return this.#recorded.getOrInsertComputed(action, () => new Map());
  }

  /**
   * Returns and resets the counts of the failures that `isTaken` accepts. Removes the failures whose `countedMs` has
   * passed.
   */
  #drainCounts(nowMs: number, isTaken: (one: RecordedFailure) => boolean): CountedRepeats[] {
    const taken: CountedRepeats[] = [];
    for (const ofAction of this.#recorded.values())
      for (const [key, one] of ofAction) {
        if (nowMs >= one.untilMs) ofAction.delete(key);
        if (one.repeats === 0 || !isTaken(one)) continue;
        taken.push({ ...one });
        one.repeats = 0;
      }
    return taken;
  }

  /** Writes a row for each count. If a row cannot be written, this count and those after it are kept for later rows. */
  async #writeCounts(counts: readonly CountedRepeats[]): Promise<void> {
    for (const [index, one] of counts.entries())
      try {
        await this.#write(one, null);
      } catch (error) {
        for (const left of counts.slice(index)) this.#giveBack(left);
        throw error;
      }
  }

  #giveBack({ repeats, ...failure }: CountedRepeats): void {
    const ofAction = this.#of(failure);
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined) known.repeats += repeats;
    else ofAction.set(keyOf(failure), { ...failure, repeats, untilMs: Number.NEGATIVE_INFINITY });
  }

  /**
   * Writes the first audit row of a failure. If the write fails, the next equal failure becomes the first one and
   * counts this failure as a repeat.
   */
  async #begin(
    first: RecordedFailure,
    known: RecordedFailure | undefined,
    requestContext: RequestContext,
  ): Promise<void> {
    this.#of(first).set(keyOf(first), first);
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
    { action, actor, details, repeats }: CountedRepeats,
    requestContext: RequestContext | null,
  ): Promise<void> {
    const at = this.#deps.clock.now();
    const row = {
      at,
      action,
      requestContext,
      details: { ...details, ...(repeats > 0 && { repeats }) },
    };
    try {
      await recordAudit(this.#deps.db, { ...row, actor: actor ?? null });
    } catch (error) {
      // The deletion of a company may have removed the user since the first row, so this row has no actor.
      if (actor === undefined || !isReferenceViolation(error)) throw error;
      await recordAudit(this.#deps.db, { ...row, actor: null });
    }
  }
}

const keyOf = ({ actor, details }: Failure): string =>
  JSON.stringify([actor?.userId, actor?.jti, details]);

function withoutDetails({ action, details }: Failure): Failure {
  return { action, details: Object.fromEntries(Object.keys(details).map((name) => [name, null])) };
}
