// Checks values of options. A wrong value ends the benchmark with the exit status of `parseArgs` errors
// (scripts/bench.ts).

export function wrongUsage(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
}

export function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0) return value;
  throw wrongUsage(`${name} must be a whole number, not ${text}`);
}

export function durationMs(name: string, text: string): number {
  const [, count, unit = ""] = /^(\d+)([smh])$/.exec(text) ?? [];
  const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };
  if (count === undefined)
    throw wrongUsage(`${name} must be a time such as 90s, 10m or 1h, not ${text}`);
  return Number(count) * (units[unit] ?? 0);
}
