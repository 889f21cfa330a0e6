// `bun run executables [--target bun-linux-arm64] [--commit HASH]`: builds `dist/reviewrelay-server` with all processes, commands and files of
// the product, and `dist/reviewrelay`, the command of partners. Bun names the targets, such as `bun-linux-x64` (the default
// is this machine) and `bun-darwin-arm64`; for others than its own it downloads the runtime. A build without .git names the
// commit.
import { globSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { driverError } from "../db/driver.ts";
import { bundleForNode } from "../src/lib/bundle.ts";
import { ROOT } from "../db/executable.ts";
import { COMMIT } from "../src/lib/version.ts";
import { builtDashboard, writeBuilt } from "../src/dashboard/assets.ts";

/** The files that the product reads at run time, below the root of the sources. */
const FILES = [
  "db/migrations/*.sql",
  "db/migrations/meta/_journal.json",
  "db/upgrades/*.sql",
  "src/docs/*.{css,js}",
  "src/docs/guides/*.md",
  "src/docs/{embed,oauth,verify}/*",
  "dist/{dashboard.json,reviewrelay.mjs}",
];
const COMMAND = join(ROOT, "src/cli/main.ts");

const { values } = parseArgs({
  options: { target: { type: "string" }, commit: { type: "string", default: COMMIT } },
});
const fault = driverError();
if (fault !== undefined) throw new Error(fault);
const dist = join(ROOT, "dist");
await Bun.write(join(dist, "dashboard.json"), writeBuilt(await builtDashboard()));
await Bun.write(join(dist, "reviewrelay.mjs"), await bundleForNode(COMMAND));
// The executable contains every file that one of its modules imports with `type: "file"`.
const files = globSync(FILES, { cwd: ROOT }).map((name) => JSON.stringify(join(ROOT, name)));
const entry = join(dist, "server.ts");
await Bun.write(
  entry,
  [
    // A package of passkeys needs this polyfill earlier than the bundler loads it.
    'import "reflect-metadata";',
    ...files.map((file, at) => `import f${at} from ${file} with { type: "file" };`),
    `export const files = [${files.map((_, at) => `f${at}`).join(", ")}];`,
    `await import(${JSON.stringify(join(ROOT, "src/operate/main.ts"))});`,
  ].join("\n"),
);
await compile("reviewrelay-server", entry);
await compile("reviewrelay", COMMAND);

async function compile(name: string, entrypoint: string): Promise<void> {
  const outfile = join(dist, name);
  const { target, commit } = values;
  const built = await Bun.build({
    entrypoints: [entrypoint],
    root: ROOT,
    compile: {
      outfile,
      ...(target !== undefined && { target: target as Bun.Build.CompileTarget }),
    },
    // Files keep their paths below the root, which is `/$bunfs/root` in the executable.
    naming: { asset: "[dir]/[name].[ext]" },
    define: { BUILD_COMMIT: JSON.stringify(commit) },
    minify: { syntax: true, whitespace: true },
  });
  if (!built.success) throw new AggregateError(built.logs, `${name} was not built.`);
  console.log(`${outfile}: ${(Bun.file(outfile).size / 1e6).toFixed(1)} MB`);
}
