import type { Db } from "../../db/client.ts";
import { isReferenceViolation } from "../../db/errors.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { type AuditActor, recordAudit } from "./queries/audit.ts";
import type { AuditAction } from "./audit-model.ts";

/**
 * By audit action: the time in ms after the row of a failure during which repeats are only counted, and the highest number
 * of different failures that get separate rows within that time. Further failures share one row whose details are null.
 */
const LIMITS = {
  AUTH_LOGIN_FAILED: { countedMs: 60_000, distinct: 100 },
  AUTH_LOCKED: { countedMs: 60_000, distinct: 100 },
  SSO_REFUSED: { countedMs: 60_000, distinct: 100 },
  CLIENT_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  OTP_FAILED: { countedMs: 60_000, distinct: 100 },
  PROVIDER_AUTH_FAILED: { countedMs: 60_000, distinct: 100 },
  // A refused caller is signed in, so that strangers cannot use up the number.
  AUTHZ_DENIED: { countedMs: 3_600_000, distinct: 10_000 },
} as const satisfies Partial<Record<AuditAction, object>>;

/** Time in ms between two writes of all counts. */
const WRITE_EVERY_MS = 60_000;

export interface Failure {
  readonly action: keyof typeof LIMITS;
  /** The caller whose request was refused; absent if nobody is known. */
  readonly actor?: AuditActor;
  /** The details of the failure. Failures of one actor with equal details count as repeats of each other. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Recorded extends Failure {
  untilMs: number;
  repeats: number;
}

/** Repeats of a failure that no audit row has yet. */
type Counted = Failure & Pick<Recorded, "repeats">;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Audits refused requests and failed attempts of unauthenticated clients without writing a row for each. The first
 * failure is written immediately. Repeats within the time of `LIMITS` are counted, and the count is stored in the next row
 * of the same failure. A separate row has the count if no such failure follows: with the next failure of any kind, each
 * minute, and when the process stops. Each process counts separately.
 */
export class FailureAudit {
  readonly #deps: Deps;
  /** Recent failures by action and `keyOf`, in the order in which their audit rows were written. */
  readonly #recorded = new Map<Failure["action"], Map<string, Recorded>>();
  /** The writes of all counts so far. */
  #flushed: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async record(failure: Failure, requestContext: RequestContext): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const { countedMs, distinct } = LIMITS[failure.action];
    const ofAction = this.#of(failure);
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined && nowMs < known.untilMs) {
      known.repeats++;
      return;
    }
    ofAction.delete(keyOf(failure));
    const expired = this.#takeCounts(nowMs, ({ untilMs }) => untilMs <= nowMs);
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

  /** Writes all counts each minute until the signal aborts, so that a process that is killed loses those of a minute. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(WRITE_EVERY_MS, signal);
      await this.flush().catch((error: unknown) =>
        log.warn("audit.counts_unwritten", errorFields(error)),
      );
    }
  }

  /**
   * Writes all counts that no audit row has yet, after the writes that have begun: at a stop the connections are closed
   * when this returns.
   */
  flush(): Promise<void> {
    const flushed = this.#flushed.then(() =>
      this.#writeCounts(this.#takeCounts(this.#deps.clock.monotonicMs(), () => true)),
    );
    this.#flushed = flushed.catch(() => {});
    return flushed;
  }

  #of({ action }: Pick<Failure, "action">): Map<string, Recorded> {
    return this.#recorded.getOrInsertComputed(action, () => new Map());
  }

  /** Forgets the failures whose time is over, and takes the counts of those that `isTaken` accepts. */
  #takeCounts(nowMs: number, isTaken: (one: Recorded) => boolean): Counted[] {
    const taken: Counted[] = [];
    for (const ofAction of this.#recorded.values())
      for (const [key, one] of ofAction) {
        if (nowMs >= one.untilMs) ofAction.delete(key);
        if (one.repeats === 0 || !isTaken(one)) continue;
        taken.push({ ...one });
        one.repeats = 0;
      }
    return taken;
  }

  /** Writes a row for each count. A count that could not be written is counted again with the next ones. */
  async #writeCounts(counts: readonly Counted[]): Promise<void> {
    for (const [index, one] of counts.entries())
      try {
        await this.#write(one, null);
      } catch (error) {
        for (const left of counts.slice(index)) this.#giveBack(left);
        throw error;
      }
  }

  #giveBack({ repeats, ...failure }: Counted): void {
    const ofAction = this.#of(failure);
    const known = ofAction.get(keyOf(failure));
    if (known !== undefined) known.repeats += repeats;
    else ofAction.set(keyOf(failure), { ...failure, repeats, untilMs: Number.NEGATIVE_INFINITY });
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
    { action, actor, details, repeats }: Counted,
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
      // The deletion of a company may have removed the user since the first row.
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
