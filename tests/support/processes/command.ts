import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../..");

export interface CommandEnd {
  readonly status: number | null;
  /** Both of its outputs. */
  readonly said: string;
}

/** Runs one of our commands in a process of its own, with nothing of the surroundings but what a program needs. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = "",
): Promise<CommandEnd> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  return { status: child.exitCode, said: out + err };
}
