// Part of `bun run check`: neither rooms nor files may import each other in a cycle, directly or indirectly. Imports of
// types count, too. Prints the imports of every cycle.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { findCycles, importsOf, roomImports, type FileImport } from "./import-graph.ts";

const ROOT = join(import.meta.dir, "../..");
/** The trees that are checked. Of the tests only the shared folders are listed, because nothing imports test files. */
const TREES = [
  "db",
  "dispatcher",
  "scripts",
  "src",
  "tests/conformance",
  "tests/hostile",
  "tests/operations",
  "tests/shipping",
  "tests/simulation",
  "tests/support",
  "tests/verdicts",
];

const imports = TREES.flatMap((tree) => [
  ...new Bun.Glob(`${tree}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT }),
]).flatMap((file) => importsOf(file, readFileSync(join(ROOT, file), "utf8")));
const rooms = roomImports(
  imports.filter(({ to }) => TREES.some((tree) => to.startsWith(`${tree}/`))),
  roomOf,
);
const faults = [...cyclesIn(rooms, (edge) => edge.shownBy), ...cyclesIn(imports, (edge) => edge)];
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

/**
 * Returns the folders of a file. The trees are siblings. A domain is one room: its sub-folders only divide roles that
 * became too long for one file. A file beside the domains is a separate room: `src/app.ts` imports all domains, and
 * several of them import `src/master-key.ts`. The operator's commands start the dispatcher, which imports `src`, so
 * they are a separate tree.
 */
function roomOf(file: string): string[] {
  if (file.startsWith("src/operate/")) return ["operate", ...file.split("/").slice(2, -1)];
  const tree = TREES.find((one) => file.startsWith(`${one}/`)) ?? "";
  const path = file.slice(tree.length + 1).split("/");
  const isWhole = tree === "src" && !file.startsWith("src/dashboard/app/");
  return [tree, ...(isWhole ? path.slice(0, 1) : path.slice(0, -1))];
}

function cyclesIn<Edge extends FileImport>(
  edges: readonly Edge[],
  shownBy: (edge: Edge) => FileImport,
): string[] {
  return findCycles(edges).map((cycle) =>
    [
      `${[...cycle, ...cycle.slice(0, 1)].map(({ from }) => from).join(" → ")}:`,
      ...cycle.map(shownBy).map(({ from, to }) => `  ${from} imports ${to}`),
    ].join("\n"),
  );
}
