import { isoInstant, type Clock } from "./clock.ts";
import { fieldsOf } from "./fields.ts";

const LEVELS = { debug: 10, info: 20, warn: 30, error: 40 } as const;
export type LogLevel = keyof typeof LEVELS;
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const satisfies LogLevel[];

type Fields = Record<string, unknown>;

/**
 * Writes one JSON line per event, named `noun.verb`. Callers pass ids and codes, never secrets, bodies or personal
 * addresses.
 */
export interface Log {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

export function createLog(
  options: { level: LogLevel; role: string; clock: Clock },
  write: (line: string) => void = (line) => void process.stdout.write(line),
): Log {
  const at =
    (level: LogLevel) =>
    (event: string, fields: Fields = {}) => {
      if (LEVELS[level] < LEVELS[options.level]) return;
      const head = { at: isoInstant(options.clock.now()), level, role: options.role, event };
      write(`${JSON.stringify({ ...head, ...fields })}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/**
 * Returns the fields of an unexpected error that may be logged: message, name, code and stack of its cause or, without
 * a cause, of itself.
 */
export function errorFields(error: unknown): Fields {
  if (!(error instanceof Error)) return { error: String(error) };
  const cause = error.cause instanceof Error ? error.cause : error;
  return {
    error: cause.message,
    name: cause.name,
    code: fieldsOf(cause)["code"],
    stack: cause.stack,
  };
}
