const AT = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

export const formatTime = (seconds: number): string => AT.format(seconds * 1_000);

/** Writes a period, such as `Fri, Nov 21, 10:00 AM – 11:00 AM`. */
export function formatPeriod(period: { readonly since: string; readonly until: string }): string {
  return AT.formatRange(new Date(period.since), new Date(period.until));
}

/** A period of seconds as an address has it. */
export const periodAt = (since: number, until: number) => ({
  since: new Date(since * 1_000).toISOString(),
  until: new Date(until * 1_000).toISOString(),
});
