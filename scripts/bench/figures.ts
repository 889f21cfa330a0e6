// What the scenarios make of what they measured.
/** The value that a share `q` of them does not exceed, to two digits. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN, 2);
}

/** Microseconds per delivery, between two readings of CPU time in ms. */
export function perDelivery(
  before: number | undefined,
  after: number | undefined,
  deliveries: number,
): number | undefined {
  return before === undefined || after === undefined
    ? undefined
    : round(((after - before) * 1000) / deliveries, 1);
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
