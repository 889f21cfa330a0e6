import type { RefusalReason } from "./model.ts";

/** Ends a sign-in through a provider. All refusals look the same from outside; the audit log has the reason. */
export class SsoRefusal extends Error {
  readonly reason: RefusalReason;
  /** Must hold nothing that is secret, and no email. */
  readonly details: Readonly<Record<string, unknown>>;
  constructor(reason: RefusalReason, details: Readonly<Record<string, unknown>> = {}) {
    super(reason);
    this.name = "SsoRefusal";
    this.reason = reason;
    this.details = details;
  }
}
