import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { lacks, skipped } from "../needs.ts";

const FOLDER = join(import.meta.dir, "../../../.cache/php");

/** Installs packages with Composer, and answers their `vendor` folder; undefined without Composer or the packages. */
export function composerWith(name: string, packages: readonly string[]): string | undefined {
  const folder = join(FOLDER, name);
  const vendor = join(folder, "vendor");
  if (lacks("php", "composer")) return undefined;
  if (existsSync(join(vendor, "autoload.php"))) return vendor;
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, COMPOSER_ALLOW_SUPERUSER: "1" };
  const options = {
    cwd: folder,
    env,
    stdout: "ignore",
    stderr: "ignore",
    timeout: 60_000,
  } as const;
  const { success } = Bun.spawnSync(
    ["composer", "require", "--no-interaction", ...packages],
    options,
  );
  if (success) return vendor;
  skipped("Packagist");
  return undefined;
}
