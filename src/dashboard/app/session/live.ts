import { useEffect, useEffectEvent, useRef, useState } from "react";

import { BASE_URL } from "../api/connect.ts";
import { readIdentity } from "./identity.ts";
import { useApi, useSession } from "./session.tsx";

export type LiveState = "connecting" | "live" | "waiting";

interface StreamReader {
  readonly onState: (state: LiveState) => void;
  readonly onMessage: (event: string, data: unknown) => void;
  /** Called when the server answers the request for the stream with 401. */
  readonly onUnauthorized: () => void;
}

interface StreamRequest {
  /** Path of the event stream below `{base_url}`. */
  readonly path: string;
  readonly token: string;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/**
 * Time in ms without data after which an event stream is aborted and requested again. The server sends a message or a
 * keep-alive every two seconds.
 */
const SILENCE_MS = 15_000;

/**
 * Reads an event stream (`text/event-stream`) until `signal` is aborted, and requests it again with exponential
 * backoff when it ends. Uses fetch, because an EventSource cannot send the Authorization header.
 */
async function followStream(
  signal: AbortSignal,
  request: StreamRequest,
  reader: StreamReader,
): Promise<void> {
  for (
    let waitMs = FIRST_WAIT_MS;
    !signal.aborted;
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  ) {
    const wasLive = await readStream(signal, request, reader).catch(() => false);
    if (wasLive) waitMs = FIRST_WAIT_MS;
    if (signal.aborted) return;
    reader.onState("waiting");
    await pause(waitMs, signal);
  }
}

/**
 * Requests the event stream once and reads the response until it ends. Returns true if the server accepted the
 * request.
 */
async function readStream(
  signal: AbortSignal,
  { path, token }: StreamRequest,
  { onState, onMessage, onUnauthorized }: StreamReader,
): Promise<boolean> {
  const silent = new AbortController();
  const response = await fetch(BASE_URL + path, {
    headers: { Authorization: `Bearer ${token}`, Accept: "text/event-stream" },
    signal: AbortSignal.any([signal, silent.signal]),
  });
  if (response.status === 401) onUnauthorized();
  if (!response.ok || response.body === null) return false;
  onState("live");
  const chunks = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const { done, value } = await chunks.read().finally(() => clearTimeout(timer));
      if (done) return true;
      const messages = (rest + value).split("\n\n");
      rest = messages.pop() ?? "";
      for (const message of messages) dispatchMessage(message, onMessage);
    }
  } catch {
    return true;
  }
}

/**
 * Parses one message of the event stream. Expects one `data` line per message, as the server writes it
 * (src/http/event-stream.ts).
 */
function dispatchMessage(message: string, onMessage: StreamReader["onMessage"]): void {
  const lines = message.split("\n");
  const field = (name: string) =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field("data");
  if (data !== undefined) onMessage(field("event") ?? "message", JSON.parse(data));
}

/** Waits for `ms`. Resolves early when the browser comes back online or `signal` is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

/**
 * Reads the event stream at a path below `{base_url}` while the component is mounted. `handlers` maps the name of an
 * event to the function that gets its data.
 */
export function useLive(
  path: string,
  handlers: Readonly<Record<string, (data: never) => void>>,
): LiveState {
  const { token } = useSession();
  const api = useApi();
  const [state, setState] = useState<LiveState>("connecting");
  const onMessage = useEffectEvent((event: string, data: unknown) =>
    // The assertion is needed because the types of the data are not known here. Each handler declares the type that
    // the server sends for its event.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    handlers[event]?.(data as never),
  );
  useEffect(() => {
    const controller = new AbortController();
    const reader: StreamReader = {
      onState: setState,
      onMessage: (event, data) => onMessage(event, data),
      // Ends the session: sends an API request with the same token, which is answered 401, too, and the API client
      // then ends the session.
      onUnauthorized: () => void readIdentity(api).catch(() => undefined),
    };
    void followStream(controller.signal, { path, token }, reader);
    return () => controller.abort();
  }, [api, path, token]);
  return state;
}

/**
 * Calls `onStart` whenever the stream becomes live. The stream does not repeat earlier messages, so data that were read
 * before may be outdated.
 */
export function useStreamStart(live: LiveState, onStart: () => void): void {
  const wasLive = useRef(live === "live");
  const start = useEffectEvent(onStart);
  useEffect(() => {
    if (live === "live" && !wasLive.current) start();
    wasLive.current = live === "live";
  }, [live]);
}
