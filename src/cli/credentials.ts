import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import type { Clock } from "../lib/clock.ts";
import { EXIT, Failure, type Surroundings } from "./surroundings.ts";

const LOCK_POLL_MS = 20;
/** A lock this old was left by a command that died. */
const LOCK_STALE_MS = 30_000;

export interface Credentials {
  readonly accessToken: string;
  /** Absent where a token was handed in, which is all there is. */
  readonly refreshToken?: string;
  readonly expiresAtMs?: number;
  readonly clientId?: string;
}

interface Kept {
  /** Where it signed in last: the server of commands that name none. */
  readonly server: string;
  readonly servers: Readonly<Record<string, Credentials>>;
}

type Env = Surroundings["env"];

/** In the user's folder for settings, for this user alone. */
export function credentialsFile(env: Env): string {
  const home = env["HOME"] ?? env["USERPROFILE"] ?? homedir();
  const folder = env["XDG_CONFIG_HOME"] ?? env["APPDATA"] ?? join(home, ".config");
  return join(folder, "reviewrelay", "credentials.json");
}

export function keptServer(env: Env): string | undefined {
  return read(env)?.server;
}

export function keptCredentials(env: Env, server: string): Credentials | undefined {
  return read(env)?.servers[server];
}

export function keepCredentials(env: Env, server: string, credentials: Credentials): void {
  write(env, { server, servers: { ...read(env)?.servers, [server]: credentials } });
}

export function forgetCredentials(env: Env, server: string): void {
  const { [server]: _, ...servers } = read(env)?.servers ?? {};
  const [next] = Object.keys(servers);
  if (next === undefined) rmSync(credentialsFile(env), { force: true });
  else write(env, { server: next, servers });
}

/**
 * Runs `work` while no other command of this user renews a token: a refresh token works once, and its second use ends
 * the sign-in (RFC 9700, 4.14.2). Throws if the lock file cannot be made, for example in a folder that is read-only.
 */
export async function withCredentialsLock<T>(
  env: Env,
  clock: Clock,
  work: () => Promise<T>,
): Promise<T> {
  const lock = `${credentialsFile(env)}.lock`;
  while (!takeLock(lock, clock)) await clock.sleep(LOCK_POLL_MS);
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Makes the file of the lock; returns false if another command has it. */
function takeLock(lock: string, clock: Clock): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    const { code = "unknown" } = Object(error);
    if (code !== "EEXIST")
      throw new Failure(EXIT.failed, `The file ${lock} cannot be made (${code}).`, {
        cause: error,
      });
  }
  const madeAtMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
  if (clock.now().getTime() - madeAtMs > LOCK_STALE_MS) rmSync(lock, { force: true });
  return false;
}

function read(env: Env): Kept | undefined {
  try {
    const kept: Kept = JSON.parse(readFileSync(credentialsFile(env), "utf8"));
    return kept;
  } catch {
    return undefined;
  }
}

/** As a whole, so that a command that reads meanwhile finds the one or the other. */
function write(env: Env, kept: Kept): void {
  const file = credentialsFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  // A file of that name that was there before has kept its mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}
