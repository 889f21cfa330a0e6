// Part of `bun run check`: no two rooms import each other, not even types, and neither do files, directly or through
// others. It names the imports of every cycle that it finds.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { findCycles, importsOf, isInCycle, roomImports, type FileImport } from "./import-graph.ts";

const ROOT = join(import.meta.dir, "../..");
/** Tests themselves import what they test, and nobody imports them. */
const TREES = [
  "db",
  "dispatcher",
  "scripts",
  "src",
  "tests/conformance",
  "tests/simulation",
  "tests/support",
];

/**
 * What is still to be taken apart, since 2026-11-20: the import of a room or file that closes a cycle. An entry that
 * closes none any more is a fault too.
 */
const KNOWN: readonly FileImport[] = [
  { from: "src/http", to: "src/auth" },
  { from: "src/audit", to: "src/auth" },
  { from: "src/http/openapi-schemas.ts", to: "src/http/openapi-examples.ts" },
  { from: "src/dashboard/app/pages", to: "src/dashboard/app" },
  { from: "src/dashboard/app/ui", to: "src/dashboard/app" },
  {
    from: "src/dashboard/app/pages/operator/dispatcher-tables.tsx",
    to: "src/dashboard/app/pages/operator/dispatcher.tsx",
  },
  {
    from: "src/dashboard/app/pages/operator/shards.tsx",
    to: "src/dashboard/app/pages/operator/dispatcher.tsx",
  },
];

const imports = TREES.flatMap((tree) => [
  ...new Bun.Glob(`${tree}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT }),
]).flatMap((file) => importsOf(file, readFileSync(join(ROOT, file), "utf8")));
const rooms = roomImports(
  imports.filter(({ to }) => TREES.some((tree) => to.startsWith(`${tree}/`))),
  roomOf,
);
const faults = [
  ...cyclesIn(rooms, (edge) => edge.shownBy),
  ...cyclesIn(imports, (edge) => edge),
  ...KNOWN.filter((one) => ![rooms, imports].some((edges) => isInCycle(edges, one))).map(
    ({ from, to }) => `${from} → ${to} closes no cycle any more: take it off KNOWN.`,
  ),
];
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

/** The trees stand side by side. A domain is one room: its folders are files of one role that became too long. */
function roomOf(file: string): string[] {
  const tree = TREES.find((one) => file.startsWith(`${one}/`)) ?? "";
  const folders = file
    .slice(tree.length + 1)
    .split("/")
    .slice(0, -1);
  const isWhole = tree === "src" && !file.startsWith("src/dashboard/app/");
  return [tree, ...(isWhole ? folders.slice(0, 1) : folders)];
}

function cyclesIn<Edge extends FileImport>(
  edges: readonly Edge[],
  shownBy: (edge: Edge) => FileImport,
): string[] {
  const isKnown = ({ from, to }: Edge) =>
    KNOWN.some((known) => known.from === from && known.to === to);
  return findCycles(edges.filter((edge) => !isKnown(edge))).map((cycle) =>
    [
      `${[...cycle, ...cycle.slice(0, 1)].map(({ from }) => from).join(" → ")}:`,
      ...cycle.map(shownBy).map(({ from, to }) => `  ${from} imports ${to}`),
    ].join("\n"),
  );
}
