import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

export interface SmallDisk {
  /** Fills the disk completely for this time. */
  fill(ms: number): Promise<void>;
  stop(): void;
}

const SIZE_MB = 256;
const CHUNK = Buffer.alloc(1_048_576);

/** Mounts a small file system at a folder; returns undefined if that is not permitted, as for any user but root. */
export function mountSmallDisk(folder: string): SmallDisk | undefined {
  const mount = ["mount", "-t", "tmpfs", "-o", `size=${SIZE_MB}m`, "chaos", folder];
  if (process.getuid?.() !== 0 || run(mount) !== 0) return undefined;
  const filler = join(folder, "filler");
  return {
    async fill(ms) {
      const file = openSync(filler, "w");
      try {
        while (writeSync(file, CHUNK) > 0);
      } catch {
        // The disk is full.
      }
      closeSync(file);
      await Bun.sleep(ms);
      rmSync(filler);
    },
    stop: () => void run(["umount", "-l", folder]),
  };
}

function run([program = "", ...args]: readonly string[]): number | null {
  return spawnSync(program, args, { stdio: "ignore" }).status;
}
