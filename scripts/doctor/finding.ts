/** What one look has found. `remedy` says what to do, and stands wherever something is not as it should be. */
export type Finding =
  | { readonly kind: "ok"; readonly said: string }
  | { readonly kind: "advice" | "fault"; readonly said: string; readonly remedy: string };

export const ok = (said: string): Finding => ({ kind: "ok", said });
/** It works, and something about it will be missed one day. */
export const advice = (said: string, remedy: string): Finding => ({ kind: "advice", said, remedy });
export const fault = (said: string, remedy: string): Finding => ({ kind: "fault", said, remedy });

/** How long one look may take. */
const WITHIN_MS = 8_000;

/** A look that fails in a way of its own, or takes too long, is a fault as well. */
export async function lookAt(
  look: () => Promise<Finding> | Finding,
  remedy: string,
): Promise<Finding> {
  const late = Promise.withResolvers<Finding>();
  const timer = setTimeout(
    () => late.resolve(fault(`no answer within ${WITHIN_MS / 1_000} s`, remedy)),
    WITHIN_MS,
  );
  try {
    return await Promise.race([look(), late.promise]);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    return fault(reason.replace(/\.$/, ""), remedy);
  } finally {
    clearTimeout(timer);
  }
}
