import type { CursorPage } from "../api/client.ts";

export type Format = "csv" | "json";

/** Maximum number of rows in an exported file. The page tells the user when rows were left out. */
export const EXPORTED_AT_MOST = 10_000;

interface Export<Row> {
  readonly format: Format;
  readonly read: (cursor: string | undefined) => Promise<CursorPage<Row>>;
  /** Returns the CSV columns of a row. A JSON export contains the complete row instead. */
  readonly lineOf: (row: Row) => Line;
  readonly onProgress: (count: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Exports a list page by page. Each page is serialized before the next page is read, so that only one page
 * exists as objects in memory.
 */
export async function exportRows<Row>({ format, read, lineOf, onProgress, signal }: Export<Row>) {
  const parts: Blob[] = [];
  let count = 0;
  let cursor: string | undefined;
  do {
    const { data: rows, next_cursor: next } = await read(cursor);
    signal.throwIfAborted();
    const taken = rows.slice(0, EXPORTED_AT_MOST - count);
    parts.push(new Blob([written(format, taken, lineOf, count === 0)]));
    count += taken.length;
    cursor = next ?? undefined;
    if (taken.length < rows.length) break;
    onProgress(count);
  } while (cursor !== undefined && count < EXPORTED_AT_MOST);
  if (format === "json") parts.push(new Blob([count === 0 ? "[]\n" : "\n]\n"]));
  return { parts, count, isCut: cursor !== undefined };
}

function written<Row>(
  format: Format,
  rows: readonly Row[],
  lineOf: (row: Row) => Line,
  isFirst: boolean,
): string {
  const [first] = rows;
  if (first === undefined) return "";
  if (format === "csv") {
    const lines = rows.map((row) => csvLine(lineOf(row)));
    return (isFirst ? csvHead(lineOf(first)) : "") + lines.join("");
  }
  return (isFirst ? "[\n" : ",\n") + rows.map((row) => JSON.stringify(row)).join(",\n");
}

type Cell = string | number | null;
export type Line = Readonly<Record<string, Cell>>;

/** Returns the CSV header line. CSV lines end with CRLF (RFC 4180). */
export function csvHead(line: Line): string {
  return `${Object.keys(line).map(csvCell).join(",")}\r\n`;
}

export function csvLine(line: Line): string {
  return `${Object.values(line).map(csvCell).join(",")}\r\n`;
}

/** Escapes a CSV cell. An apostrophe is put before a text that a spreadsheet would evaluate as a formula. */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text =
    /^[=+\-@\t\r\n|%]/.test(value.trimStart()) || /^\s/.test(value) ? `'${value}` : value;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
