import { closeSync, openSync } from "node:fs";

import type { ConnectionPhase } from "./connection.ts";

/** Errors that only this machine can cause: it has no descriptor, buffer, memory, port or permission left. */
const OUR_CODES = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRNOTAVAIL",
  "EAGAIN",
  "EPERM",
  "EACCES",
  "EAI_MEMORY",
]);

/**
 * Whether a connection could not even be tried, because this machine lacks something (contract 7.8). Bun 1.4.4 reports
 * a lack of descriptors as ECONNREFUSED, and the resolver as a name that does not exist: so descriptors are tried.
 */
export function isOurOwn(phase: ConnectionPhase, error?: Error): boolean {
  if (phase !== "connecting" && phase !== "tunnelling") return false;
  if (error !== undefined && "code" in error && OUR_CODES.has(String(error.code))) return true;
  return lacksDescriptors();
}

function lacksDescriptors(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EMFILE" || code === "ENFILE";
  }
}
