import { readFileSync } from "node:fs";

const NS_PER_MS = 1e6;

/**
 * Reads the CPU time in ms of the main thread of a process, which runs its event loop. Systems without /proc give the wall
 * time instead.
 */
export function mainThreadMs(pid: number): number {
  try {
    const [ns] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
    return Number(ns) / NS_PER_MS;
  } catch {
    return performance.now();
  }
}
