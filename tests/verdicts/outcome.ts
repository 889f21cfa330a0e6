/** The number of attempts of an entry (contract 7.7). */
export const ATTEMPTS = 4;
/** The number of consecutive failures that disables a subscription (contract 6.3). */
export const DISABLED_AT = 20;

/** Returns the outcome of an attempt that was answered, or failed, in this way. */
export function outcomeAfter(
  answer: "accepted" | "gone" | "other",
  attempt: number,
): "delivered" | "failed" | "retry" {
  if (answer === "accepted") return "delivered";
  return answer === "gone" || attempt >= ATTEMPTS ? "failed" : "retry";
}

/** Returns the outcome of an attempt with this status; null means that there was no answer. */
export function outcomeOf(status: number | null, attempt: number) {
  if (status !== null && status >= 200 && status < 300) return outcomeAfter("accepted", attempt);
  return outcomeAfter(status === 410 ? "gone" : "other", attempt);
}

/** Returns the failure counter after an entry has ended. */
export function failuresAfter(failures: number, outcome: "delivered" | "failed"): number {
  return outcome === "delivered" ? 0 : failures + 1;
}
