import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import type { Encodings } from "../lib/encodings.ts";

/**
 * Built file of the dashboard that browsers load. Its name contains a hash of its content, so that browsers can
 * cache it forever.
 */
export interface Asset {
  readonly name: string;
  readonly contentType: string;
  /** True if the HTML document links to the file directly. All other files are loaded by these entries. */
  readonly isEntry: boolean;
  readonly encodings: Encodings;
}

const ROOT = join(import.meta.dirname, "../..");
const BUILD = join(import.meta.dirname, "build.ts");
const CODINGS = ["br", "gzip", "identity"] as const;

/**
 * Returns the files of the built dashboard. If no build of the current sources exists, builds the dashboard
 * first, which takes some seconds.
 */
export async function dashboardAssets(): Promise<Asset[]> {
  const file = await fileOfBuild();
  if (existsSync(file)) return readAssets(file);
  if (await isWritable(dirname(file))) {
    await build(file);
    return readAssets(file);
  }
  const folder = await mkdtemp(join(tmpdir(), "reviewrelay-"));
  try {
    const unkept = join(folder, "dashboard.json");
    await build(unkept);
    return await readAssets(unkept);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function isWritable(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs the build in a separate process with an empty environment, because this process has secrets in its
 * environment.
 */
async function build(file: string): Promise<void> {
  await promisify(execFile)(process.execPath, [BUILD, file], { cwd: ROOT, env: {} });
}

/**
 * Returns the path of the file that contains the build of the current sources. The name contains a hash of all
 * sources and of package.json, so that any change leads to a new build.
 */
export async function fileOfBuild(): Promise<string> {
  const sources = (await readdir(join(ROOT, "src"), { recursive: true }))
    .filter((name) => /\.\w+$/.test(name))
    .toSorted();
  const hash = createHash("sha256");
  for (const name of ["package.json", ...sources.map((one) => join("src", one))])
    hash.update(`${name}\0`).update(await readFile(join(ROOT, name)));
  return join(ROOT, `dist/dashboard-${hash.digest("hex").slice(0, 16)}.json`);
}

export function writeAssets(assets: readonly Asset[]): string {
  return JSON.stringify(
    assets.map(({ encodings, ...asset }) => ({
      ...asset,
      encodings: Object.fromEntries(CODINGS.map((one) => [one, encodings[one].toBase64()])),
    })),
  );
}

async function readAssets(file: string): Promise<Asset[]> {
  const written: (Omit<Asset, "encodings"> & { encodings: Record<keyof Encodings, string> })[] =
    JSON.parse(await readFile(file, "utf8"));
  return written.map(({ encodings: { br, gzip, identity }, ...asset }) => ({
    ...asset,
    encodings: {
      br: Uint8Array.fromBase64(br),
      gzip: Uint8Array.fromBase64(gzip),
      identity: Uint8Array.fromBase64(identity),
    },
  }));
}
