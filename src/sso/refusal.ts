import type { RefusalReason } from "./model.ts";

/** A sign-in that ends here. Outside all look the same; the reason goes into the audit log. */
export class Refusal extends Error {
  readonly reason: RefusalReason;
  /** Nothing that is secret, and no email. */
  readonly details: Readonly<Record<string, unknown>>;
  constructor(reason: RefusalReason, details: Readonly<Record<string, unknown>> = {}) {
    super(reason);
    this.name = "Refusal";
    this.reason = reason;
    this.details = details;
  }
}
