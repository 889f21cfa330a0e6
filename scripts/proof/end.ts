import type { ChildProcess } from "node:child_process";

const STOPS_WITHIN_MS = 20_000;

/** Asks a process to end (SIGTERM), waits until it has, and kills one that takes longer than 20 s; its exit code. */
export async function endInOrder(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOPS_WITHIN_MS);
  await gone;
  clearTimeout(late);
  return child.exitCode;
}
