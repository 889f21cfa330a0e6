// The folder that one demo lives in: claimed by one start at a time, and never somebody else's.
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

import { takeLock } from "./stores/lock.ts";
import { errorCode } from "./stores/processes.ts";
import { StartError } from "./start-error.ts";

export interface DataDir {
  path: string;
  /** What the start that ran here last wrote down; it may have been killed. */
  earlier: RunState | undefined;
  writeState(state: RunState): void;
  release(): void;
}

/** `run.json`: who runs here, for a second start, the next start, and tools that need the stores. */
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

/** Claims the folder until release() or our death; throws a StartError that says why it cannot. */
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
  const release = takeLock(join(path, "start.lock"));
  const earlier = readState(path);
  if (release === undefined) {
    throw new StartError(
      `DATA_DIR ${path} is in use by another start${earlier ? ` (process ${earlier.pid}, ${earlier.server_root})` : ""}.`,
      "Stop that one first, or set DATA_DIR (and PORT) to run a second one beside it.",
    );
  }
  return {
    path,
    earlier,
    writeState: (state) => writeFileWhole(join(path, STATE), JSON.stringify(state, null, 2)),
    release,
  };
}

/** Replaces a file: readers see the old content or the new, never half of it, and other users none of it. */
export function writeFileWhole(path: string, content: string): void {
  const aside = `${path}.${process.pid}.tmp`;
  writeFileSync(aside, content, { mode: 0o600 });
  renameSync(aside, path);
}

function refuseForeign(path: string): void {
  const entries = readdirSync(path);
  // A start that was killed while it wrote the marker leaves it under its provisional name.
  if (entries.length === 0 || entries.some((name) => name.startsWith(MARKER))) return;
  throw new StartError(
    `DATA_DIR ${path} holds other files (${entries.slice(0, 3).join(", ")}${entries.length > 3 ? ", ..." : ""}) and was not made by this program.`,
    "Set DATA_DIR to a new or empty folder.",
  );
}

/** Keeps other users out, but for root's PostgreSQL, which runs as another user and has to pass through. */
function setRights(path: string): void {
  const us = process.getuid?.();
  // A mounted volume may be writable for us and still belong to somebody else.
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
