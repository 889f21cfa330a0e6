// Part of `bun run check`: no two rooms import each other, not even types, and neither do files, directly or through
// others. It names the imports of every cycle that it finds.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { findCycles, importsOf, roomImports, type FileImport } from "./import-graph.ts";

const ROOT = join(import.meta.dir, "../..");
/** Of the tests what they share. The others import what they test, and none of these imports them. */
const TREES = [
  "db",
  "dispatcher",
  "scripts",
  "src",
  "tests/conformance",
  "tests/hostile",
  "tests/simulation",
  "tests/support",
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
 * The trees stand side by side. A domain is one room: its folders are files of one role that became too long. A file
 * beside the domains is a room too: `src/app.ts` imports all of them, and several of them import `src/master-key.ts`.
 */
function roomOf(file: string): string[] {
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
