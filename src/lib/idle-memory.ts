import type { Clock } from "./clock.ts";

const LOOK_MS = 2_000;
const BUSY_LOOK_MS = 100;
/** What a busy process takes in ordinary work; only beyond it is anything collected ahead of its time. */
const ORDINARY_BYTES = 200 * 2 ** 20;
const BUSY_GROWTH = 1.1;
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

/**
 * Collects while far more is due than there is room for, as after a takeover, once the process is larger than ordinary
 * work makes it, until the signal aborts. By itself the engine lets garbage become several times what is in use: a dispatcher with 60 MB
 * in use came to 440 (`bun run bench takeover`). Otherwise the engine's own pace is left alone, since collecting like this
 * costs an eighth of all deliveries (`bun run bench dispatch`).
 */
export async function collectWhenCrowded(
  { clock, memory, isCrowded }: { clock: Clock; memory: Memory; isCrowded: () => boolean },
  stop: AbortSignal,
): Promise<void> {
  let lowest = Number.POSITIVE_INFINITY;
  while (!stop.aborted) {
    await clock.sleep(BUSY_LOOK_MS, stop);
    if (stop.aborted || !isCrowded()) continue;
    const resident = memory.residentBytes();
    // What was freed goes back a moment after the collection.
    lowest = Math.min(lowest, resident);
    if (resident < Math.max(ORDINARY_BYTES, lowest * BUSY_GROWTH)) continue;
    memory.collect();
    lowest = memory.residentBytes();
  }
}
