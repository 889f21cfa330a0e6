import type { ChildProcess } from "node:child_process";

const STOPS_WITHIN_MS = 20_000;

/** Sends SIGTERM, waits for the process to end, and kills it after 20 s; returns the exit code. */
export async function endInOrder(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOPS_WITHIN_MS);
  await gone;
  clearTimeout(late);
  return child.exitCode;
}
