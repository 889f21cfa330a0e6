// `bun run executables [--target bun-linux-arm64] [--commit HASH] [--build-only]`: builds `dist/reviewrelay-server` with all processes,
// commands and files of the product, and `dist/reviewrelay`, the command of partners. It then uses those of this machine with
// stores of its own, and fails if they do not deliver. Bun names the targets, such as `bun-linux-x64` and `bun-darwin-arm64`; for
// others than its own it downloads the runtime, and what it builds must have the same files inside. A build without .git names
// the commit. It statically imports only built-ins, because a fresh clone has no dependencies installed.
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ROOT } from "../db/executable.ts";
import { COMMIT } from "../src/lib/version.ts";
import { buildExecutables } from "./executables/build.ts";
import { ensureInstalled } from "./install/install.ts";

const { values } = parseArgs({
  options: {
    target: { type: "string" },
    commit: { type: "string", default: COMMIT },
    "build-only": { type: "boolean", default: false },
  },
});
const { target, commit } = values;
const folder = join(ROOT, "dist");
if (values["build-only"]) {
  await buildExecutables({ folder, commit, target });
} else {
  await ensureInstalled("all");
  const { tryExecutables } = await import("./executables/try.ts");
  // Ours are built last, or into a folder of their own, so that `dist` has those of the target.
  const own = target === undefined || target === `bun-${process.platform}-${process.arch}`;
  const ownFolder = own ? folder : join(folder, "own");
  const files = await buildExecutables({ folder: ownFolder, commit });
  await tryExecutables(ownFolder, commit);
  const others = own ? files : await buildExecutables({ folder, commit, target });
  const missing = files.filter((name) => !others.includes(name));
  if (missing.length > 0) throw new Error(`The build for ${target} lacks ${missing.join(", ")}.`);
}
