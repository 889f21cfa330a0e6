/** The result of one check. `said` states the result; `remedy` says what to do about it, unless the result is ok. */
export type Finding =
  | { readonly kind: "ok"; readonly said: string }
  | { readonly kind: "advice" | "fault"; readonly said: string; readonly remedy: string };

export const ok = (said: string): Finding => ({ kind: "ok", said });
/** Creates a finding about something that works now but may cause trouble later. */
export const advice = (said: string, remedy: string): Finding => ({ kind: "advice", said, remedy });
export const fault = (said: string, remedy: string): Finding => ({ kind: "fault", said, remedy });

/** The time limit of one check in ms. */
const CHECK_MS = 8_000;

/**
 * Returns the reason of a fault with the hosts before it, unless it names one of them. The message of a failed
 * connection or a timeout often contains no host.
 */
export function naming(hosts: readonly string[], reason: string): string {
  const isNamed = hosts.length === 0 || hosts.some((one) => reason.includes(one));
  return isNamed ? reason : `${hosts.join(", ")}: ${reason}`;
}

/**
 * Runs one check. An unexpected error or a timeout becomes a fault, whose text contains the hosts that were contacted.
 */
export async function checkWithin(
  check: () => Promise<Finding> | Finding,
  remedy: string,
  hosts: readonly string[] = [],
): Promise<Finding> {
  const late = Promise.withResolvers<Finding>();
  const failed = (reason: string) => fault(naming(hosts, reason), remedy);
  const timer = setTimeout(
    () => late.resolve(failed(`no response within ${CHECK_MS / 1_000} s`)),
    CHECK_MS,
  );
  try {
    return await Promise.race([check(), late.promise]);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    return failed(reason.replace(/\.$/, ""));
  } finally {
    clearTimeout(timer);
  }
}
