// The rules of scripts/check/imports.ts as pure functions over paths and texts.
import { dirname, join } from "node:path/posix";

/** An import of values or types from another file, by a statement, a dynamic import or a re-export. */
export interface FileImport {
  readonly from: string;
  readonly to: string;
}

/** An import of one room from another. `shownBy` is an import between files of the two rooms. */
export interface RoomImport extends FileImport {
  readonly shownBy: FileImport;
}

const RELATIVE_IMPORT =
  /^(?:import|export)\b[^;"]*?\bfrom\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)/gm;

/** Returns the relative imports of a file. */
export function importsOf(from: string, source: string): FileImport[] {
  return Array.from(source.matchAll(RELATIVE_IMPORT), ([, a, b, c]) => ({
    from,
    to: join(dirname(from), a ?? b ?? c ?? ""),
  }));
}

/**
 * Returns the imports between sibling rooms. A room is a folder with everything below it. The files next to those
 * folders form one room, which is named after their common folder. `roomOf` returns the folders of a file, down to the
 * deepest folder that is a separate room.
 */
export function roomImports(
  imports: readonly FileImport[],
  roomOf: (file: string) => readonly string[],
): RoomImport[] {
  const found = new Map<string, RoomImport>();
  for (const shownBy of imports) {
    const [a, b] = [roomOf(shownBy.from), roomOf(shownBy.to)];
    const parts = a.findIndex((part, at) => part !== b[at]);
    const shared = parts < 0 ? a.length : parts;
    const from = a.slice(0, shared + 1).join("/");
    const to = b.slice(0, shared + 1).join("/");
    if (from !== to) found.set(`${from} ${to}`, { from, to, shownBy });
  }
  return [...found.values()];
}

/** Returns a shortest cycle through each import that is part of one; every cycle once. */
export function findCycles<Edge extends FileImport>(imports: readonly Edge[]): Edge[][] {
  const leaving = Map.groupBy(imports, ({ from }) => from);
  const cycles = new Map<string, Edge[]>();
  for (const first of imports) {
    if (first.from === first.to) continue;
    const back = shortestPath(leaving, first.to, first.from);
    if (back === undefined) continue;
    const cycle = [first, ...back];
    const name = cycle
      .map(({ from }) => from)
      .toSorted()
      .join(" ");
    if (!cycles.has(name)) cycles.set(name, cycle);
  }
  return [...cycles.values()];
}

function shortestPath<Edge extends FileImport>(
  leaving: ReadonlyMap<string, readonly Edge[]>,
  from: string,
  to: string,
): Edge[] | undefined {
  const reachedBy = new Map<string, Edge>();
  const queue = [from];
  for (const at of queue) {
    if (at === to) return pathTo(reachedBy, from, to);
    for (const edge of leaving.get(at) ?? []) {
      if (edge.to === from || reachedBy.has(edge.to)) continue;
      reachedBy.set(edge.to, edge);
      queue.push(edge.to);
    }
  }
  return undefined;
}

function pathTo<Edge extends FileImport>(
  reachedBy: ReadonlyMap<string, Edge>,
  from: string,
  to: string,
): Edge[] {
  const path: Edge[] = [];
  for (let at = to; at !== from;) {
    const edge = reachedBy.get(at);
    if (edge === undefined) break;
    path.unshift(edge);
    at = edge.from;
  }
  return path;
}
