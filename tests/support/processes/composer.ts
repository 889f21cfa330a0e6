import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "../../../.cache/php");

/** Installs packages with Composer, and answers their `vendor` folder; undefined without Composer or the packages. */
export function composerWith(name: string, packages: readonly string[]): string | undefined {
  const folder = join(FOLDER, name);
  const vendor = join(folder, "vendor");
  if (existsSync(join(vendor, "autoload.php"))) return vendor;
  if (Bun.which("php") === null || Bun.which("composer") === null) return undefined;
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
  return success ? vendor : undefined;
}
