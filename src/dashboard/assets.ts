import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import type { Encodings } from "../lib/encodings.ts";
import { IS_EXECUTABLE, ROOT } from "../../db/executable.ts";

/**
 * Built file of the dashboard that browsers load. Its name contains a hash of its content, so that browsers can
 * cache it forever.
 */
export interface Asset {
  readonly name: string;
  readonly contentType: string;
  readonly encodings: Encodings;
}

/** The built dashboard: its HTML document, with the placeholders of vite.config.ts, and the files that it loads. */
export interface Built {
  readonly document: string;
  readonly assets: readonly Asset[];
}

const BUILD = join(ROOT, "src/dashboard/build.ts");
/** Path of the built dashboard inside the executable. */
const EXECUTABLE_BUILD = join(ROOT, "dist/dashboard.json");
const CONTENT_CODINGS = ["br", "gzip", "identity"] as const;

/**
 * Returns the built dashboard. If no build of the current sources exists, builds the dashboard
 * first, which takes some seconds.
 */
export async function builtDashboard(): Promise<Built> {
  if (IS_EXECUTABLE) return readBuilt(EXECUTABLE_BUILD);
  const file = await fileOfBuild();
  if (existsSync(file)) return readBuilt(file);
  if (await isWritable(dirname(file))) {
    await build(file);
    return readBuilt(file);
  }
  const folder = await mkdtemp(join(tmpdir(), "reviewrelay-"));
  try {
    const unkept = join(folder, "dashboard.json");
    await build(unkept);
    return await readBuilt(unkept);
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
 * Runs the build in a separate process with an empty environment, so that the build cannot read the secrets in the
 * environment of this process.
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

export function writeBuilt({ document, assets }: Built): string {
  return JSON.stringify({
    document,
    assets: assets.map(({ encodings, ...asset }) => ({
      ...asset,
      encodings: Object.fromEntries(CONTENT_CODINGS.map((one) => [one, encodings[one].toBase64()])),
    })),
  });
}

interface Written extends Omit<Built, "assets"> {
  readonly assets: readonly (Omit<Asset, "encodings"> & {
    readonly encodings: Readonly<Record<keyof Encodings, string>>;
  })[];
}

async function readBuilt(file: string): Promise<Built> {
  const { document, assets }: Written = JSON.parse(await readFile(file, "utf8"));
  return {
    document,
    assets: assets.map(({ encodings: { br, gzip, identity }, ...asset }) => ({
      ...asset,
      encodings: {
        br: Uint8Array.fromBase64(br),
        gzip: Uint8Array.fromBase64(gzip),
        identity: Uint8Array.fromBase64(identity),
      },
    })),
  };
}
