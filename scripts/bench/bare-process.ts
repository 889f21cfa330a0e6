// Runs the bare loop with which the dispatcher is compared.
import { spawn } from "node:child_process";
import { join } from "node:path";

/**
 * Runs a bare loop as a separate process. It waits asynchronously: `spawnSync` would block this process, and its
 * connection to Redis would time out.
 */
export async function bareLoop(
  sender: "fetch" | "client" | "node" | "undici",
  deliveries: number,
  urls: readonly string[],
  { stop, caFile }: { readonly stop?: AbortSignal; readonly caFile?: string } = {},
): Promise<{ deliveries: number; seconds: number; cpuUs: number }> {
  const script = join(import.meta.dir, "bare-loop.ts");
  const child = spawn(process.execPath, [script, sender, String(deliveries), ...urls], {
    env: {
      PATH: process.env["PATH"] ?? "",
      // `fetch` has no other way to accept the certificate of the receivers.
      ...(sender === "fetch" && { NODE_TLS_REJECT_UNAUTHORIZED: "0" }),
      ...(caFile !== undefined && { BENCH_CA: caFile }),
      BUN_CONFIG_MAX_HTTP_REQUESTS: "4096",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  stop?.addEventListener("abort", end);
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  stop?.removeEventListener("abort", end);
  if (text !== "") return JSON.parse(text.trim().split("\n").at(-1) ?? "");
  // The signal that stopped this process may also have stopped the child.
  if (stop?.aborted === true)
    return { deliveries: Number.NaN, seconds: Number.NaN, cpuUs: Number.NaN };
  throw new Error("The bare loop failed.");
}
