import type { Db } from "../../db/client.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Clock } from "../lib/clock.ts";
import { recordAudit } from "./actions/audit.ts";
import type { AuditAction } from "./audit-model.ts";

/** For so long after its row repeats of a failure are counted, not written. */
const COUNTED_MS = 60_000;
/** So many failures of one action are told apart within that time; what comes beyond is one of nobody in particular. */
const TOLD_APART = 100;

export interface Failure {
  readonly action: Extract<
    AuditAction,
    "CLIENT_AUTH_FAILED" | "OTP_FAILED" | "PROVIDER_AUTH_FAILED"
  >;
  /** Failures with the same details are repeats of each other. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Recorded extends Failure {
  untilMs: number;
  repeats: number;
}

/**
 * Audits what strangers try: the first failure at once, as a row of its own, and the repeats of the minute after it as a
 * number in the next row. That is the next of its kind, or, where none comes, a row of their own that is written beside
 * the next failure of any kind. So nobody writes rows as fast as they can guess. Each process counts for itself.
 */
export class FailureAudit {
  readonly #deps: { readonly db: Db; readonly clock: Clock };
  /** By action and details, in the order of their rows. */
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
    const over = Object.values(this.#recorded).flatMap((some) => takeOver(some, nowMs));
    const told = ofAction.size < TOLD_APART ? failure : ofNobody(failure);
    const same = ofAction.get(keyOf(told));
    // All that is remembered changes before anything is awaited, so that of several at once one has the row.
    if (same !== undefined) same.repeats++;
    else
      await this.#begin(
        { ...told, untilMs: nowMs + COUNTED_MS, repeats: 0 },
        known,
        requestContext,
      );
    for (const one of over) await this.#write(one, null);
  }

  /** Writes the first row. If that fails, the next failure is the first, and counts this one as a repeat. */
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

function ofNobody({ action, details }: Failure): Failure {
  return { action, details: Object.fromEntries(Object.keys(details).map((name) => [name, null])) };
}

/** Forgets what is over, and answers what of it no other row will tell. */
function takeOver(recorded: Map<string, Recorded>, nowMs: number): Recorded[] {
  const over: Recorded[] = [];
  for (const [key, one] of recorded) {
    if (nowMs < one.untilMs) break;
    recorded.delete(key);
    if (one.repeats > 0) over.push(one);
  }
  return over;
}
