// Reads the user and system time of processes in ms since their start, and their memory in bytes. The result is NaN on
// systems without /proc.
import { readdirSync, readFileSync } from "node:fs";

const TICKS_PER_S = 100;

/** Positions of the fields of /proc/<pid>/stat after the name. */
const PARENT = 1;
const OWN = [11, 12] as const;
const CHILDREN = [13, 14] as const;

function statOf(pid: number | string | undefined): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  } catch {
    return [];
  }
}

function sum(fields: readonly string[], places: readonly number[]): number {
  const ticks = places.reduce((all, place) => all + Number(fields[place] ?? Number.NaN), 0);
  return (ticks * 1_000) / TICKS_PER_S;
}

export function cpuMsOf(pid: number | undefined): number {
  return sum(statOf(pid), OWN);
}

/** Returns the CPU time of a server and all its backends, including ended ones. */
export function cpuMsOfTree(root: number | undefined): number {
  if (root === undefined) return Number.NaN;
  let total = sum(statOf(root), [...OWN, ...CHILDREN]);
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    const fields = statOf(name);
    // The process may have ended meanwhile.
    if (Number(fields[PARENT]) === root) total += sum(fields, [...OWN, ...CHILDREN]);
  }
  return total;
}

/** Returns the process id of a backend's postmaster; undefined if the server does not run on this machine. */
export function postmasterOf(backend: number | undefined): number | undefined {
  try {
    const text = readFileSync(`/proc/${backend}/stat`, "utf8");
    return /\(postgres\) /.test(text) ? Number(text.split(") ")[1]?.split(" ")[PARENT]) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the resident memory of a process in bytes. */
export function memoryOf(pid: number | undefined): number {
  try {
    const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kb) * 1024;
  } catch {
    return Number.NaN;
  }
}
