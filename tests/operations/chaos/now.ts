/** Milliseconds since the epoch that never decrease within this process, so that its log stays in order. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
