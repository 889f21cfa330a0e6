// Reads the packages of bun.lock and the licences of their package.json.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { fieldsOf } from "../../src/lib/fields.ts";

/** The used part of bun.lock: key → [name@version, registry, dependencies, integrity]. */
export interface Lock {
  readonly workspaces: Readonly<Record<string, Needs>>;
  readonly packages: Readonly<
    Record<string, readonly [id: string, registry?: string, needs?: Needs, integrity?: string]>
  >;
}

type Names = Readonly<Record<string, string>>;
interface Needs {
  readonly dependencies?: Names;
  readonly optionalDependencies?: Names;
  /** Includes optional peer dependencies: Bun installs those that another package requires anyway. */
  readonly peerDependencies?: Names;
}

export interface Package {
  /** `name@version`. Several copies of a package share it. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** Whether `bun install --production` installs the package. */
  readonly isShipped: boolean;
  /** The hash of the package, such as `sha512-…`. */
  readonly integrity: string;
  /** An SPDX expression; undefined if the package is for another platform and not installed here. */
  readonly licence: string | undefined;
  /** Ids of the dependencies. */
  readonly needs: readonly string[];
}

/** Splits a key of the lock, which is a path below node_modules: `a/@b/c` is the copy of `@b/c` that only `a` uses. */
const segmentsOf = (key: string): string[] => key.match(/(@[^/]+\/)?[^/]+/g) ?? [];

/** Returns every third-party package once, by its id. */
export function packagesOf(lock: Lock, licenceOf: (folder: string) => string | undefined) {
  const shipped = shippedKeys(lock);
  const found = new Map<string, Package>();
  for (const [key, [id, , , integrity]] of Object.entries(lock.packages)) {
    if (integrity === undefined) continue;
    const at = id.lastIndexOf("@");
    const before = found.get(id);
    found.set(id, {
      id,
      name: id.slice(0, at),
      version: id.slice(at + 1),
      integrity,
      isShipped: before?.isShipped === true || shipped.has(key),
      licence: before?.licence ?? licenceOf(segmentsOf(key).join("/node_modules/")),
      needs: [...new Set([...(before?.needs ?? []), ...neededBy(lock, key).map(idIn(lock))])],
    });
  }
  return [...found.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns the ids of the packages that package.json itself lists. */
export function namedPackages(lock: Lock): string[] {
  return keysOf(lock, "", lock.workspaces[""]).map(idIn(lock));
}

export function readLock(root: string): Lock {
  return Bun.JSONC.parse(readFileSync(join(root, "bun.lock"), "utf8")) as Lock;
}

export function readPackages(root: string): Package[] {
  return packagesOf(readLock(root), (folder) =>
    readLicence(join(root, "node_modules", folder, "package.json")),
  );
}

function readLicence(path: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  const { license, licenses } = fieldsOf(JSON.parse(text));
  if (typeof license === "string") return license;
  // The old form without SPDX expressions lists alternatives.
  const types = [licenses ?? []].flat().map((one) => fieldsOf(one)["type"]);
  return types.filter((type) => typeof type === "string").join(" OR ") || "none is named";
}

const idIn =
  ({ packages }: Lock) =>
  (key: string) =>
    packages[key]?.[0] ?? key;

function shippedKeys(lock: Lock): Set<string> {
  const keys = new Set(keysOf(lock, "", lock.workspaces[""]));
  for (const key of keys) for (const needed of neededBy(lock, key)) keys.add(needed);
  return keys;
}

function neededBy(lock: Lock, key: string): string[] {
  return keysOf(lock, key, lock.packages[key]?.[2]);
}

/** Resolves each dependency to the nearest copy, as Node does. */
function keysOf(lock: Lock, from: string, needs: Needs = {}): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = needs;
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  return names.flatMap((name) => nearest(lock, from, name) ?? []);
}

function nearest({ packages }: Lock, from: string, name: string): string | undefined {
  const segments = segmentsOf(from);
  for (let depth = segments.length; depth >= 0; depth--) {
    const key = [...segments.slice(0, depth), name].join("/");
    if (packages[key] !== undefined) return key;
  }
  return undefined;
}
