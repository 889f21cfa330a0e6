import { dictionary } from "@zxcvbn-ts/language-common";

/**
 * Contract 4.17: the most frequent leaked passwords, of which some 18,000 have at least 8 characters; they
 * are compared in any case. The zxcvbn-ts project maintains the list.
 */
const COMMON: ReadonlySet<string> = new Set(dictionary["passwords-common"]);

export function isCommonPassword(password: string): boolean {
  return COMMON.has(password.toLowerCase());
}

/** The fault that the schema of a new password cannot find. */
export function passwordFault(password: string): string | undefined {
  return isCommonPassword(password) ? "is too common: others would guess it at once" : undefined;
}
