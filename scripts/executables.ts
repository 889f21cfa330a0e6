// `bun run executables [--target bun-linux-arm64] [--commit HASH] [--build-only]` builds two executables.
// `dist/reviewrelay-server` contains all processes, commands and files of the product. `dist/reviewrelay` is the
// command line program for partners. The command then runs the executables of this machine with separate stores, and
// fails if they do not deliver.
//
// Targets have Bun's names, such as `bun-linux-x64` and `bun-darwin-arm64`. For a target other than this machine Bun
// downloads the runtime, and the executable must contain the same files. A build without .git needs `--commit`. This
// file statically imports only built-in modules, because a fresh clone has no dependencies installed.
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
  const { tryExecutables } = await import("./executables/use.ts");
  // The executables of this machine are built last, or into another folder, so that `dist` contains those of the
  // target.
  const own = target === undefined || target === `bun-${process.platform}-${process.arch}`;
  const ownFolder = own ? folder : join(folder, "own");
  const files = await buildExecutables({ folder: ownFolder, commit });
  await tryExecutables(ownFolder, commit);
  const others = own ? files : await buildExecutables({ folder, commit, target });
  const missing = files.filter((name) => !others.includes(name));
  if (missing.length > 0) throw new Error(`The build for ${target} lacks ${missing.join(", ")}.`);
}
