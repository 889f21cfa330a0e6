import type { Clock } from "./clock.ts";

const IDLE_CHECK_MS = 2_000;
const BUSY_CHECK_MS = 100;
/** The interval in milliseconds at which a process that is not busy checks whether it has become so. */
const CALM_CHECK_MS = 500;
/**
 * The memory in bytes of a busy process in ordinary work. Below this, a busy process is left to the engine's own
 * collections.
 */
const ORDINARY_BYTES = 200 * 2 ** 20;
const BUSY_GROWTH = 1.1;
/**
 * The growth of memory after which an idle process collects again. A full collection stops the process for about 20
 * ms, so small growth does not justify one.
 */
const GROWTH = 1.25;

export interface Memory {
  residentBytes(): number;
  /** Frees unreachable objects. The operating system gets their memory back a moment later. */
  collect(): void;
}

export const processMemory: Memory = {
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => Bun.gc(true),
};

/**
 * Collects garbage once the process is idle after a burst of work, until the signal aborts. The engine collects only
 * when it allocates, so an idle process would keep the memory.
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
    else if (memory.residentBytes() > usual * GROWTH) {
      memory.collect();
      usual = undefined;
    }
  }
}

/**
 * Forced GC: collects while far more work is due than there is room for, as after a takeover, until the signal aborts.
 * It applies above `ORDINARY_BYTES`, after every 10 % of growth.
 *
 * Left alone, the engine lets the heap reach several times its live size: after a takeover of 1,000,000 entries a
 * dispatcher with 60 MB in use grew to 440 MB. In ordinary work the engine keeps its own pace, because collecting like this costs an
 * eighth of all deliveries (`bun run bench dispatch`).
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
    // Freed memory goes back a moment after the collection, so the lowest reading since then counts.
    lowest = Math.min(lowest, resident);
    if (resident < Math.max(ORDINARY_BYTES, lowest * BUSY_GROWTH)) continue;
    memory.collect();
    lowest = memory.residentBytes();
  }
}
