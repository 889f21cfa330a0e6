import type { CursorPage } from "../api/client.ts";

export type Format = "csv" | "json";

/** Maximum number of rows in an exported file. The page tells the user if the list has more rows. */
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
    parts.push(new Blob([serializedRows(format, taken, lineOf, count === 0)]));
    count += taken.length;
    cursor = next ?? undefined;
    if (taken.length < rows.length) break;
    onProgress(count);
  } while (cursor !== undefined && count < EXPORTED_AT_MOST);
  if (format === "json") parts.push(new Blob([count === 0 ? "[]\n" : "\n]\n"]));
  return { parts, count, isCut: cursor !== undefined };
}

function serializedRows<Row>(
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

/** Characters that begin a formula, in every width, and characters before them that a spreadsheet may skip. */
const FORMULA =
  "[=+\\-@|%\u2212\u207a-\u207c\u208a-\u208c\ufe62\ufe63\ufe66\ufe6a\ufe6b\uff05\uff0b\uff0d\uff1d\uff20\uff5c]";
const SKIPPED_CHARS = "\\s\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800";
const FORMULA_AT_START = new RegExp(`^(?:\\s|[${SKIPPED_CHARS}]*${FORMULA})`, "u");
/**
 * Matches a separator that is inside a text and that a formula follows. The pattern reads no run of characters twice,
 * so that its time is linear.
 */
const SEPARATOR_BEFORE_FORMULA = new RegExp(
  `([;\\t\\r\\n])(?=(?:(?![;\\t\\r\\n])[${SKIPPED_CHARS}"])*${FORMULA})`,
  "gu",
);

/**
 * Escapes a CSV cell. An apostrophe is put before each formula that a spreadsheet would evaluate: at the start of the
 * text, and after a separator inside it. A spreadsheet that separates cells by semicolons splits the text there,
 * because quotes protect only a cell that begins with them. A JSON export contains the exact text.
 */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const parts = value.replaceAll(SEPARATOR_BEFORE_FORMULA, "$1'");
  const text = FORMULA_AT_START.test(value) ? `'${parts}` : parts;
  return /[",;\t\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
