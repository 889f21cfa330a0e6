/** The result of one check. `remedy` is present unless the result is ok. */
export type Finding =
  | { readonly kind: "ok"; readonly said: string }
  | { readonly kind: "advice" | "fault"; readonly said: string; readonly remedy: string };

export const ok = (said: string): Finding => ({ kind: "ok", said });
/** Something works but may cause trouble later. */
export const advice = (said: string, remedy: string): Finding => ({ kind: "advice", said, remedy });
export const fault = (said: string, remedy: string): Finding => ({ kind: "fault", said, remedy });

/** The time limit of one check. */
const WITHIN_MS = 8_000;

/** Puts the hosts before a reason that names none of them: messages of a failed look-up or a timeout often do not. */
export function naming(hosts: readonly string[], reason: string): string {
  const isNamed = hosts.length === 0 || hosts.some((one) => reason.includes(one));
  return isNamed ? reason : `${hosts.join(", ")}: ${reason}`;
}

/** Runs one check. An unexpected error or a timeout is a fault, too; it names the hosts that the check asks. */
export async function lookAt(
  look: () => Promise<Finding> | Finding,
  remedy: string,
  hosts: readonly string[] = [],
): Promise<Finding> {
  const late = Promise.withResolvers<Finding>();
  const failed = (reason: string) => fault(naming(hosts, reason), remedy);
  const timer = setTimeout(
    () => late.resolve(failed(`no answer within ${WITHIN_MS / 1_000} s`)),
    WITHIN_MS,
  );
  try {
    return await Promise.race([look(), late.promise]);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    return failed(reason.replace(/\.$/, ""));
  } finally {
    clearTimeout(timer);
  }
}
