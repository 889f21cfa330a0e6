import type { Clock } from "./clock.ts";

const LOOK_MS = 2_000;
/** Collecting everything stops the process for some 20 ms: only what a burst has left behind is worth that. */
const GROWTH = 1.25;

export interface Memory {
  residentBytes(): number;
  /** Frees what nothing refers to. It goes back to the system a moment later. */
  collect(): void;
}

export const processMemory: Memory = {
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => Bun.gc(true),
};

/**
 * Gives back what a burst took, once there is nothing to do, until the signal aborts. By itself the engine collects
 * when it allocates, so an idle process would keep it.
 */
export async function collectWhenIdle(
  { clock, memory, isIdle }: { clock: Clock; memory: Memory; isIdle: () => boolean },
  stop: AbortSignal,
): Promise<void> {
  let usual: number | undefined = memory.residentBytes();
  while (!stop.aborted) {
    await clock.sleep(LOOK_MS, stop);
    if (stop.aborted || !isIdle()) continue;
    if (usual === undefined) usual = memory.residentBytes();
    else if (memory.residentBytes() > usual * GROWTH) {
      memory.collect();
      usual = undefined;
    }
  }
}
