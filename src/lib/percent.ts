/**
 * Returns a share in percent, rounded to one decimal. A share below 1 is at most 99.9 %, so that it is never shown as
 * all. Pages and mails show shares by this rule.
 */
export const percentOf = (share: number): number =>
  Math.min(Math.round(share * 1_000) / 10, share < 1 ? 99.9 : 100);
