/** Writes `review_received` as `Review received`. */
export function sentence(value: string): string {
  const words = value.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const NUMBERS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const number = (value: number): string => NUMBERS.format(value);

/** Writes `1 event` and `3 events`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  return value < 1_000 ? `${number(value)} ms` : `${number(value / 1_000)} s`;
}

/** Writes seconds in the largest unit that says enough. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${number(seconds / 3_600)} h`;
  return `${number(seconds / 86_400)} d`;
}
