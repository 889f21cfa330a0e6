import type { Message } from "../data/reads.ts";
import type { AttemptRow } from "../data/attempt-rows.ts";

type Cell = string | number | null;
export type Line = Readonly<Record<string, Cell>>;

/** One line an event; of its attempts how many there were, and the last. */
export function lineOfMessage({ attempts, ...message }: Message): Line {
  const last = attempts.at(-1);
  return {
    ...message,
    attempts: attempts.length,
    last_attempt_at: last?.started_at ?? null,
    last_outcome: last?.outcome ?? null,
    last_status_code: last?.status_code ?? null,
    last_error_code: last?.error_code ?? null,
    last_duration_ms: last?.duration_ms ?? null,
  };
}

export function lineOfAttempt(row: AttemptRow): Line {
  return { ...row };
}

/** Lines end as RFC 4180 says; the first has the names. */
export function csvHead(line: Line): string {
  return `${Object.keys(line).map(csvCell).join(",")}\r\n`;
}

export function csvLine(line: Line): string {
  return `${Object.values(line).map(csvCell).join(",")}\r\n`;
}

/** A text that a spreadsheet would take for a formula begins with an apostrophe, which makes it a text. */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text =
    /^[=+\-@\t\r\n|%]/.test(value.trimStart()) || /^\s/.test(value) ? `'${value}` : value;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
