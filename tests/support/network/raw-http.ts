import { connect } from "node:net";

/** The responses on one connection. */
export interface RawAnswers {
  /** The statuses of all complete responses, without interim ones (1xx). */
  readonly statuses: readonly number[];
  /** All received bytes, one character per byte. */
  readonly text: string;
  /** Whether the server closed the connection. */
  readonly isClosed: boolean;
}

interface Patience {
  /** The number of responses to wait for. By default the wait ends when the server closes the connection. */
  readonly answers?: number;
  /** The time limit for hanging connections. Most tests never reach it. */
  readonly patienceMs?: number;
  /** Whether the requests are HEAD: responses then have no body, even with a Content-Length. */
  readonly isHead?: boolean;
  /** Whether the client ends its half of the connection after the bytes, and still reads. */
  readonly endsHalf?: boolean;
}

const PATIENCE_MS = 20_000;

/** Sends bytes to a server without any HTTP library, one character per byte, and collects its responses. */
export function sendRaw(
  root: string,
  bytes: string | Buffer,
  {
    answers = Number.POSITIVE_INFINITY,
    patienceMs = PATIENCE_MS,
    isHead = false,
    endsHalf = false,
  }: Patience = {},
): Promise<RawAnswers> {
  const { hostname, port } = new URL(root);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: endsHalf });
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
    if (endsHalf) socket.end(bytes, "latin1");
    else socket.write(bytes, "latin1");
  });
}

/** Writes one request. `headers` are lines that end in CR LF; a `Host` is added if they have none. */
export function requestText(line: string, headers = "", body = ""): string {
  const host = /^host:/im.test(headers) ? "" : "Host: localhost\r\n";
  return `${line}\r\n${host}${headers}\r\n${body}`;
}

/**
 * Reads the statuses of complete responses. It skips bodies by Content-Length, which all our responses with a body
 * have.
 */
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
