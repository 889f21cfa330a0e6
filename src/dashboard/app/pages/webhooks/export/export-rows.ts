import { csvHead, csvLine, type Line } from "./rows-to-text.ts";

export type Format = "csv" | "json";

/** A file has so many rows at the most; the page says so when it ends there. */
export const EXPORTED_AT_MOST = 10_000;

interface Part<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

interface Export<Row> {
  readonly format: Format;
  readonly read: (cursor: string | undefined) => Promise<Part<Row>>;
  /** What is written of a row as CSV; JSON has all of it. */
  readonly lineOf: (row: Row) => Line;
  readonly onProgress: (count: number) => void;
  readonly signal: AbortSignal;
}

/** Reads a list page by page and writes each page before it reads the next, so that one page at a time is objects. */
export async function exportRows<Row>({ format, read, lineOf, onProgress, signal }: Export<Row>) {
  const parts: Blob[] = [];
  let count = 0;
  let cursor: string | undefined;
  do {
    const { rows, next } = await read(cursor);
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
