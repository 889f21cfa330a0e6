// Statistics over measured values.

/** Returns the `q` quantile of the values, for `q` from 0 to 1. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

/** A least-squares line through equally spaced values. */
export interface Slope {
  readonly mean: number;
  readonly perStep: number;
  /** The slope in percent of the mean. */
  readonly percentPerStep: number;
}

export function slopeOf(values: readonly number[]): Slope {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = (values.length - 1) / 2;
  const covariance = values.reduce((sum, value, n) => sum + (n - middle) * (value - mean), 0);
  const variance = values.reduce((sum, _, n) => sum + (n - middle) ** 2, 0);
  const slope = covariance / variance;
  return {
    mean: round(mean, 2),
    perStep: round(slope, 3),
    percentPerStep: round((slope * 100) / mean, 2),
  };
}
