import { dictionary } from "@zxcvbn-ts/language-common";

/**
 * decisions.md 2, passwords: what everybody's list of leaked passwords begins with, some 18,000 of at least 8
 * characters, in any case. The package is kept by the people of zxcvbn-ts.
 */
const COMMON: ReadonlySet<string> = new Set(dictionary["passwords-common"]);

export function isCommonPassword(password: string): boolean {
  return COMMON.has(password.toLowerCase());
}

/** What a schema cannot say of a new password. */
export function passwordFault(password: string): string | undefined {
  return isCommonPassword(password) ? "is too common: others would guess it at once" : undefined;
}
