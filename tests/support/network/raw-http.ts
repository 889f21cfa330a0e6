import { connect } from "node:net";

/** What came back on one connection. */
export interface RawAnswers {
  /** Of every answer that was complete, interim ones aside. */
  readonly statuses: readonly number[];
  /** All bytes, one character each. */
  readonly text: string;
  /** Whether the server closed the connection. */
  readonly isClosed: boolean;
}

interface Patience {
  /** Nothing more is waited for once so many answers came; absent: the server has to close. */
  readonly answers?: number;
  /** Ends what hangs; no test asserts it. */
  readonly patienceMs?: number;
  /** The answers have no bodies, whatever length they tell. */
  readonly isHead?: boolean;
}

const PATIENCE_MS = 20_000;

/** Writes bytes, one character each, to a server, and takes down what it says. */
export function sendRaw(
  root: string,
  bytes: string | Buffer,
  { answers = Number.POSITIVE_INFINITY, patienceMs = PATIENCE_MS, isHead = false }: Patience = {},
): Promise<RawAnswers> {
  const { hostname, port } = new URL(root);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname);
    const timer = setTimeout(() => end(false), patienceMs);
    const end = (isClosed: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ statuses: statusesOf(text, isHead), text, isClosed });
    };
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (statusesOf(text, isHead).length >= answers) end(false);
    });
    socket.on("end", () => end(true));
    socket.on("error", () => end(true));
    socket.write(bytes, "latin1");
  });
}

/** One request with its headers' lines, which end in CR LF, and a `Host` unless it has one. */
export function requestText(line: string, headers = "", body = ""): string {
  const host = /^host:/im.test(headers) ? "" : "Host: localhost\r\n";
  return `${line}\r\n${host}${headers}\r\n${body}`;
}

/** Bodies are skipped by their length, which all of our answers that have one tell. */
function statusesOf(text: string, isHead: boolean): number[] {
  const statuses: number[] = [];
  for (let at = 0; ;) {
    const end = text.indexOf("\r\n\r\n", at);
    if (end === -1) return statuses;
    const head = text.slice(at, end);
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? Number.NaN);
    const length = isHead ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    at = end + 4 + length;
    if (at > text.length) return statuses;
    if (!(status < 200)) statuses.push(status);
  }
}
