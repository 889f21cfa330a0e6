/** Milliseconds since the epoch that never step back within this process, so that what it logs is in order. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
