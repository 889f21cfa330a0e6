/**
 * Returns a share in percent with one decimal, rounded down: a share below 1 is never shown as 100 %. Pages and mails
 * show shares by this rule.
 */
export const percentOf = (share: number): number =>
  Math.floor(Number((share * 1_000).toFixed(6))) / 10;
