import { MAX_BODY_BYTES } from "../../dispatcher/http/excerpt.ts";
import { MAX_HEAD_BYTES, ResponseParser } from "../../dispatcher/http/message.ts";
import { Prng } from "../simulation/prng.ts";
import { cut, inputAt, type Corpus } from "./mutate.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";

/** Responses of receivers, valid and invalid. Every input in which a fuzz run found a bug is added here. */
const CORPUS: Corpus = {
  seeds: [
    `${OK}Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello`,
    `${OK}Content-Length: 0\r\n\r\n`,
    "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
    "HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 410 Gone\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    `${OK}${CHUNKED}5\r\nhello\r\n6;a="b"\r\n world\r\n0\r\n\r\n`,
    `${OK}${CHUNKED}00a \t;x\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n`,
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
    `${OK}Server: old\r\n\r\nno length at all`,
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=9\r\n\r\nok",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "SSH-2.0-OpenSSH_9.2\r\n\r\n",
    `${OK}Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00`,
  ],
  tokens: [
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\t",
    " ",
    ":",
    ";",
    ",",
    "\xff",
    "0",
    "f",
    "ffffffff",
    "-1",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Keep-Alive: timeout=",
    "A: b\r\n",
    "__proto__: x\r\n",
    "\r\n\r\n",
    "0\r\n\r\n",
    "400\r\n",
  ],
};

/** An input that broke a guarantee, with the guarantee. */
export interface Broken {
  readonly input: string;
  readonly promise: string;
}

/** Feeds the seeds and mutations of them to the response parser, and stops at the first input that breaks a guarantee. */
export function fuzzAnswers({
  inputs,
  seed,
}: {
  inputs: number;
  seed: number;
}): Broken | undefined {
  const prng = new Prng(seed);
  for (let i = 0; i < inputs; i++) {
    const input = inputAt(i, CORPUS, prng);
    const promise = brokenPromise(input, cut(input, prng));
    if (promise !== undefined) return { input, promise };
  }
  return undefined;
}

function brokenPromise(input: string, pieces: readonly string[]): string | undefined {
  try {
    const [whole, cutUp] = [read([input]), read(pieces)];
    const verdicts = [verdictOf(whole), verdictOf(cutUp)];
    if (verdicts[0] !== verdicts[1])
      return `is read the same way however it is cut: ${verdicts.join(" and ")}`;
    return [whole, cutUp].map(brokenBound).find((one) => one !== undefined);
  } catch (error) {
    return `throws nothing: ${String(error)}`;
  }
}

function read(pieces: readonly string[]): ResponseParser {
  const parser = new ResponseParser();
  for (const piece of pieces) parser.feed(Buffer.from(piece, "latin1"));
  parser.end();
  return parser;
}

/**
 * Summarizes the parts of a parsed response that must not depend on how the network cuts it. The text of an error may depend
 * on the cut, so it is left out.
 */
function verdictOf({ state, head, body, isReusable }: ResponseParser): string {
  const text = body.bytes().toString("latin1");
  const { statusCode, headers, framing, keepAlive } = head ?? {};
  return JSON.stringify([
    state,
    statusCode,
    headers,
    framing,
    keepAlive,
    body.cut,
    isReusable,
    text,
  ]);
}

function brokenBound({
  state,
  head,
  body,
  problem,
  isReusable,
}: ResponseParser): string | undefined {
  if (body.bytesRead > MAX_BODY_BYTES) return "reads no more of a body than the limit";
  if (JSON.stringify(head?.headers ?? {}).length > 6 * MAX_HEAD_BYTES)
    return "keeps no more of a head than the limit";
  if (head !== undefined && !(head.statusCode >= 200 && head.statusCode <= 999))
    return "has a final status";
  if (state === "invalid" && problem === "") return "says why an answer is invalid";
  if (isReusable && (state !== "complete" || body.cut))
    return "uses no connection again that is unread";
  return undefined;
}
