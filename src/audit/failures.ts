import type { Db } from "../../db/client.ts";
import type { Call } from "../http/call.ts";
import type { Clock } from "../lib/clock.ts";
import { recordAudit } from "./actions.ts";
import type { AuditAction } from "./model.ts";

/** For so long after its row repeats of a failure are counted, not written. */
const COUNTED_MS = 60_000;
/** So many kinds of failure are remembered at most. */
const REMEMBERED = 10_000;

export interface Failure {
  readonly action: Extract<
    AuditAction,
    "CLIENT_AUTH_FAILED" | "OTP_FAILED" | "PROVIDER_AUTH_FAILED"
  >;
  /** Failures with the same details are repeats of each other. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Recorded extends Failure {
  readonly untilMs: number;
  repeats: number;
}

/**
 * Audits what strangers try: the first failure at once, as a row of its own, and the repeats of the minute after it as a
 * number in the next row. That is the next of its kind, or, where none comes, a row of their own that is written beside
 * the next failure of any kind. Each process counts for itself.
 */
export class FailureAudit {
  readonly #deps: { readonly db: Db; readonly clock: Clock };
  /** In the order of their rows. */
  readonly #recorded = new Map<string, Recorded>();

  constructor(deps: { readonly db: Db; readonly clock: Clock }) {
    this.#deps = deps;
  }

  async record({ action, details }: Failure, call: Call): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const key = `${action} ${JSON.stringify(details)}`;
    const known = this.#recorded.get(key);
    if (known !== undefined && nowMs < known.untilMs) {
      known.repeats++;
      return;
    }
    this.#recorded.delete(key);
    this.#recorded.set(key, { action, details, untilMs: nowMs + COUNTED_MS, repeats: 0 });
    const over = this.#takeOver(nowMs);
    await this.#write({ action, details, repeats: known?.repeats ?? 0 }, call);
    for (const one of over) await this.#write(one, null);
  }

  /** Forgets what is over, and answers what of it nothing else will tell. */
  #takeOver(nowMs: number): Recorded[] {
    const over: Recorded[] = [];
    for (const [key, one] of this.#recorded) {
      if (nowMs < one.untilMs && this.#recorded.size <= REMEMBERED) break;
      this.#recorded.delete(key);
      if (one.repeats > 0) over.push(one);
    }
    return over;
  }

  async #write({ action, details, repeats }: Omit<Recorded, "untilMs">, call: Call | null) {
    await recordAudit(this.#deps.db, {
      at: this.#deps.clock.now(),
      action,
      actor: null,
      call,
      details: { ...details, ...(repeats > 0 && { repeats }) },
    });
  }
}
