import { Problem } from "../lib/problem.ts";

/** Contract 2.7: a body over 64 KiB is 413. */
export const BODY_LIMIT = 64 * 1024;

/** From so many bytes on it takes milliseconds to read what a body says. */
export const LARGE_BODY = 8 * 1024;

/** Reads at most `limit` bytes; one more is a 413, and the rest is not taken in. Large ones come one at a time. */
export async function readBody(request: Request, limit: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array();
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > limit) throw new Problem("payload_too_large");
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body) {
      size += chunk.byteLength;
      if (size > limit) throw new Problem("payload_too_large");
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The client has left or sent what is no HTTP, and the connection is closed: nothing of ours has failed.
    throw new Problem("invalid_json", { message: "The request body ended early." });
  }
  if (size >= LARGE_BODY) await nextTurn();
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
}

let turn = Promise.resolve();

/** One a turn of the event loop: however many large bodies came at once, whoever else asks waits for one of them. */
function nextTurn(): Promise<void> {
  turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
  return turn;
}

/** `application/json`, with any parameters. */
export function isJson(headers: Headers): boolean {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === "application/json";
}
