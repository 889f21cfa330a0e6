import { readFileSync } from "node:fs";

const NS_PER_MS = 1e6;

/**
 * The CPU time in ms that the main thread of a process has spent so far: what holds its event loop. Where the system does
 * not tell it is the time that passed.
 */
export function mainThreadMs(pid: number): number {
  try {
    const [ns] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
    return Number(ns) / NS_PER_MS;
  } catch {
    return performance.now();
  }
}
