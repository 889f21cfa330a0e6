import { createServer, type Server, type Socket } from "node:net";

import {
  advance,
  type NumberRange,
  type SequenceState,
} from "../../../src/sdk/typescript/src/index.ts";
import { nowMs } from "./now.ts";
import type { Post } from "../../verdicts/facts.ts";
import { NOTHING } from "../../verdicts/missed.ts";

/** The behaviour of a receiver. */
export type Mood =
  | "healthy"
  | "failing"
  | "gone"
  | "slow"
  | "hanging"
  /** Closes the connection before it has read the body. */
  | "resetting-early"
  /** Reads the request and closes the connection instead of answering. */
  | "resetting-late"
  /** Answers, and closes the kept connection a little later without an announcement. */
  | "closing";

const SLOW_MS = 300;
const CLOSING_MS = 30;

export interface Receivers {
  readonly port: number;
  /** All requests in order of arrival. */
  readonly posts: readonly Post[];
  /** Returns the numbers of the events that the receiver at a URL has missed, as the package for TypeScript tells. */
  missedAt(url: string): readonly NumberRange[];
  setMood(host: string, mood: Mood): void;
  stop(): void;
}

interface Received {
  readonly posts: Post[];
  readonly moods: ReadonlyMap<string, Mood>;
  /** What each receiver knows by the sequence headers, by the host and port of its URL. */
  readonly states: Map<string, SequenceState>;
  readonly sockets: Set<Socket>;
}

/** Starts one receiver per host, each on its own loopback address, and all on one port. */
export async function startReceivers(hosts: readonly string[]): Promise<Receivers> {
  const moods = new Map<string, Mood>();
  const received: Received = { posts: [], moods, states: new Map(), sockets: new Set() };
  const servers: Server[] = [];
  let port = 0;
  for (const host of hosts) {
    const server = createServer((socket) => serve(socket, host, received));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
    const address = server.address();
    if (address !== null && typeof address === "object") port = address.port;
  }
  return {
    port,
    posts: received.posts,
    missedAt: (url) => received.states.get(new URL(url).host)?.missed ?? [],
    setMood: (host, mood) => void moods.set(host, mood),
    stop() {
      for (const server of servers) server.close();
      for (const socket of received.sockets) socket.destroy();
    },
  };
}

function serve(socket: Socket, host: string, received: Received): void {
  let text = "";
  received.sockets.add(socket);
  socket.on("error", () => undefined);
  socket.on("close", () => received.sockets.delete(socket));
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    if (head === -1) return;
    const mood = received.moods.get(host) ?? "healthy";
    const headers = headersOf(text.slice(0, head));
    const length = Number(headers.get("content-length") ?? 0);
    const isWhole = text.length >= head + 4 + length;
    if (!isWhole && mood !== "resetting-early") return;
    const raw = Buffer.from(text.slice(head + 4, head + 4 + length), "latin1");
    text = text.slice(head + 4 + length);
    const post: Post = {
      atMs: nowMs(),
      // As in the subscription's URL, with a name or an address.
      host: headers.get("host") ?? "",
      eventId: headers.get("x-svc-delivery") ?? "",
      event: headers.get("x-svc-event") ?? "",
      attempt: Number(headers.get("x-svc-attempt")),
      signature: headers.get("x-svc-signature") ?? "",
      previousSignature: headers.get("x-svc-signature-previous") ?? null,
      place: placeIn(headers),
      body: isWhole ? raw.toString("utf8") : undefined,
      status: null,
      endedMs: null,
    };
    received.posts.push(post);
    void answer(socket, { post, mood, states: received.states });
  });
}

function placeIn(headers: ReadonlyMap<string, string>): Post["place"] {
  const [number, settled] = [headers.get("x-svc-sequence"), headers.get("x-svc-settled")];
  if (number === undefined && settled === undefined) return null;
  return { sequence: Number(number), settled: Number(settled) };
}

function headersOf(head: string): Map<string, string> {
  return new Map(
    head
      .split("\r\n")
      .slice(1)
      .map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
  );
}

interface Asked extends Pick<Received, "states"> {
  readonly post: Post;
  readonly mood: Mood;
}

async function answer(socket: Socket, { post, mood, states }: Asked): Promise<void> {
  // The end is noted before the response is written, so that it is never later than its consequences.
  const end = (status: number | null) => {
    post.endedMs = nowMs();
    post.status = status;
  };
  const say = (status: number) => {
    // A socket that has closed its side still delivers data in transit, which can no longer be answered.
    if (!socket.writable) return;
    end(status);
    if (status === 200 && post.place !== null)
      states.set(post.host, advance(states.get(post.host) ?? NOTHING, post.place).state);
    socket.write(`HTTP/1.1 ${status} Said\r\nContent-Length: 2\r\n\r\nok`);
  };
  switch (mood) {
    case "healthy":
      return say(200);
    case "failing":
      return say(500);
    case "gone":
      return say(410);
    case "hanging":
      socket.once("close", () => end(null));
      return;
    case "resetting-early":
    case "resetting-late":
      end(null);
      socket.resetAndDestroy();
      return;
    case "slow":
      await Bun.sleep(SLOW_MS);
      return say(200);
    case "closing":
      say(200);
      await Bun.sleep(CLOSING_MS);
      socket.end();
  }
}
