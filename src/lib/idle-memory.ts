import type { Clock } from "./clock.ts";

const IDLE_CHECK_MS = 2_000;
const BUSY_CHECK_MS = 100;
/** Interval in ms at which a process that is not busy checks whether it has become busy. */
const CALM_CHECK_MS = 500;
/**
 * Memory in bytes that a busy process needs in ordinary work. Below this size, a busy process relies on the engine's
 * own garbage collections.
 */
const ORDINARY_BYTES = 200 * 2 ** 20;
const BUSY_GROWTH = 1.1;
/**
 * Growth factor of memory after which an idle process collects again. A full collection blocks the process for about 20
 * ms, so small growth does not justify one.
 */
const IDLE_GROWTH = 1.25;

export interface Memory {
  residentBytes(): number;
  /** Frees unreachable objects. Their memory returns to the operating system a moment later. */
  collect(): void;
}

export const processMemory: Memory = {
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => Bun.gc(true),
};

/**
 * Runs a full garbage collection whenever the process becomes idle after a burst of work, until the signal aborts. The
 * engine collects only when it allocates, so an idle process would keep the memory.
 */
export async function collectWhenIdle(
  { clock, memory, isIdle }: { clock: Clock; memory: Memory; isIdle: () => boolean },
  stop: AbortSignal,
): Promise<void> {
  let usual: number | undefined = memory.residentBytes();
  while (!stop.aborted) {
    await clock.sleep(IDLE_CHECK_MS, stop);
    if (stop.aborted || !isIdle()) continue;
    if (usual === undefined) usual = memory.residentBytes();
    else if (memory.residentBytes() > usual * IDLE_GROWTH) {
      memory.collect();
      usual = undefined;
    }
  }
}

/**
 * **Forced GC.** Runs a full collection after every 10 % of growth above `ORDINARY_BYTES` while far more work is due
 * than can run, for example after a takeover of shards, until the signal aborts.
 *
 * Otherwise the engine lets the heap reach several times its live size: after a takeover of 1,000,000 entries a
 * dispatcher with 60 MB in use grew to 440 MB. In ordinary work the engine decides alone, because forced collections
 * cost an eighth of the delivery rate (`bun run bench dispatch`).
 */
export async function collectWhenCrowded(
  { clock, memory, isCrowded }: { clock: Clock; memory: Memory; isCrowded: () => boolean },
  stop: AbortSignal,
): Promise<void> {
  let lowest = Number.POSITIVE_INFINITY;
  while (!stop.aborted) {
    await clock.sleep(isCrowded() ? BUSY_CHECK_MS : CALM_CHECK_MS, stop);
    if (stop.aborted || !isCrowded()) continue;
    const resident = memory.residentBytes();
    // Freed memory returns a moment after the collection, so the lowest value since then is the baseline.
    lowest = Math.min(lowest, resident);
    if (resident < Math.max(ORDINARY_BYTES, lowest * BUSY_GROWTH)) continue;
    memory.collect();
    lowest = memory.residentBytes();
  }
}
