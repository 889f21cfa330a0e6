// The folder of a demo. Only one start at a time may use it, and a folder with other files is rejected.
import { randomBytes } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { acquireLock } from "./stores/lock.ts";
import { errorCode } from "./stores/processes.ts";
import { StartError } from "./start-error.ts";

export interface DataDir {
  path: string;
  /** The state of the last start in this folder, which may have been killed. */
  earlier: RunState | undefined;
  writeState(state: RunState): void;
  release(): void;
}

/** The content of `run.json`: processes and stores, for a concurrent start, for the next start, and for tools. */
export interface RunState {
  pid: number;
  server_root: string;
  database_url: string;
  redis_url: string;
  smtp_url: string;
  children: { pid: number; role: string }[];
}

const MARKER = "reviewrelay.json";
const STATE = "run.json";

/** Locks the folder until release() or the end of the process. Throws a StartError with the reason if that fails. */
export function openDataDir(path: string): DataDir {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (!statSync(path).isDirectory()) throw new StartError(`DATA_DIR ${path} is not a folder.`);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    refuseForeign(path);
    setRights(path);
    mark(path);
    mkdirSync(join(path, "logs"), { recursive: true, mode: 0o700 });
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `DATA_DIR ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}.`,
      "Set DATA_DIR to a folder that this user can write to.",
    );
  }
  const release = acquireLock(join(path, "start.lock"));
  const earlier = readState(path);
  if (release === undefined) {
    throw new StartError(
      `DATA_DIR ${path} is in use by another start${earlier ? ` (process ${earlier.pid}, ${earlier.server_root})` : ""}.`,
      "Stop that start first, or set DATA_DIR (and PORT) to run a second one in parallel.",
    );
  }
  return {
    path,
    earlier,
    writeState: (state) => writeFileWhole(join(path, STATE), JSON.stringify(state, null, 2)),
    release,
  };
}

/** Replaces a file atomically: readers see either the old or the new content. Other users cannot read the file. */
export function writeFileWhole(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

function refuseForeign(path: string): void {
  const entries = readdirSync(path);
  // A start that was killed while it wrote the marker leaves the marker under its temporary name.
  if (entries.length === 0 || entries.some((name) => name.startsWith(MARKER))) return;
  throw new StartError(
    `DATA_DIR ${path} holds other files (${entries.slice(0, 3).join(", ")}${entries.length > 3 ? ", ..." : ""}) and was not created by this program.`,
    "Set DATA_DIR to a new or empty folder.",
  );
}

/**
 * Denies access to other users. If this process runs as root, they may pass through the folder, because PostgreSQL then
 * runs as another user.
 */
function setRights(path: string): void {
  const us = process.getuid?.();
  // A mounted volume may be writable although it belongs to another user.
  if (us === statSync(path).uid) chmodSync(path, us === 0 ? 0o711 : 0o700);
}

function mark(path: string): void {
  const marker = join(path, MARKER);
  if (existsSync(marker)) accessSync(marker, constants.W_OK);
  else
    writeFileWhole(
      marker,
      JSON.stringify({ program: "reviewrelay", id: randomBytes(8).toString("hex") }),
    );
}

function readState(path: string): RunState | undefined {
  try {
    return JSON.parse(readFileSync(join(path, STATE), "utf8")) as RunState;
  } catch (error) {
    if (errorCode(error) === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
