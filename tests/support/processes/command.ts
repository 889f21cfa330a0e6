import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../..");

export interface CommandEnd {
  readonly status: number | null;
  /** The standard output, followed by the standard error. */
  readonly said: string;
}

/**
 * Runs one of our commands as a separate process, from the checkout `tree`. It inherits only PATH and HOME, so that no
 * setting of the machine leaks in.
 */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input = "", tree = ROOT }: { readonly input?: string | undefined; readonly tree?: string } = {},
): Promise<CommandEnd> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: tree,
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
