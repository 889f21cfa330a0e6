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
import { fieldsOf } from "../lib/fields.ts";
import { EXIT, Failure, type CommandContext } from "./context.ts";

const LOCK_POLL_MS = 20;
/** Age in ms from which a lock file is considered to be left over from a crashed command. */
const LOCK_STALE_MS = 30_000;

export interface Credentials {
  readonly accessToken: string;
  /** The refresh token; absent if the user passed an access token on standard input, which cannot be renewed. */
  readonly refreshToken?: string;
  readonly expiresAtMs?: number;
  readonly clientId?: string;
}

interface CredentialsFile {
  /** The server of the last sign-in, to which commands connect by default. */
  readonly server: string;
  readonly servers: Readonly<Record<string, Credentials>>;
}

type Env = CommandContext["env"];

/** Returns the path of the credentials file in the user's configuration folder. Only the user may read the file. */
export function credentialsFile(env: Env): string {
  const home = env["HOME"] ?? env["USERPROFILE"] ?? homedir();
  const folder = env["XDG_CONFIG_HOME"] ?? env["APPDATA"] ?? join(home, ".config");
  return join(folder, "reviewrelay", "credentials.json");
}

export function savedServer(env: Env): string | undefined {
  return read(env)?.server;
}

export function savedCredentials(env: Env, server: string): Credentials | undefined {
  return read(env)?.servers[server];
}

export function saveCredentials(env: Env, server: string, credentials: Credentials): void {
  write(env, { server, servers: { ...read(env)?.servers, [server]: credentials } });
}

export function deleteCredentials(env: Env, server: string): void {
  const { [server]: _, ...servers } = read(env)?.servers ?? {};
  const [next] = Object.keys(servers);
  if (next === undefined) rmSync(credentialsFile(env), { force: true });
  else write(env, { server: next, servers });
}

/**
 * Runs `work` under a lock, so that no other command of this user renews a token at the same time. A refresh token is
 * valid once, and its second use ends the sign-in (RFC 9700, 4.14.2). Throws if the lock file cannot be created, for
 * example in a read-only folder.
 */
export async function withCredentialsLock<T>(
  env: Env,
  clock: Clock,
  work: () => Promise<T>,
): Promise<T> {
  const lock = `${credentialsFile(env)}.lock`;
  while (!acquireLock(lock, clock)) await clock.sleep(LOCK_POLL_MS);
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Creates the lock file of the credentials; returns false if another command holds the lock. */
function acquireLock(lock: string, clock: Clock): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    const { code = "unknown" } = fieldsOf(error);
    if (code !== "EEXIST")
      throw new Failure(EXIT.failed, `The file ${lock} cannot be created (${String(code)}).`, {
        cause: error,
      });
  }
  const madeAtMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
  if (clock.now().getTime() - madeAtMs > LOCK_STALE_MS) rmSync(lock, { force: true });
  return false;
}

function read(env: Env): CredentialsFile | undefined {
  try {
    const saved: CredentialsFile = JSON.parse(readFileSync(credentialsFile(env), "utf8"));
    return saved;
  } catch {
    return undefined;
  }
}

/** Replaces the credentials file atomically, so that a concurrent reader sees either the old or the new version. */
function write(env: Env, saved: CredentialsFile): void {
  const file = credentialsFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify(saved, null, 2)}\n`, { mode: 0o600 });
  // The mode is set explicitly, because the option `mode` applies only to a new file; a leftover file of that name
  // keeps its old mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}
