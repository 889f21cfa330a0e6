import { useEffect, useRef, useState } from "react";

import { BASE_URL, useApi, useSession } from "../session.tsx";

export type LiveState = "connecting" | "live" | "waiting";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** The server says something every two seconds; silence for longer is a connection that died. */
const SILENCE_MS = 15_000;

/**
 * Follows `text/event-stream` at a path below `{base_url}`. Read by fetch, because an EventSource cannot send the
 * Bearer header; comes back by itself, later each time, when the stream ends.
 */
export function useLive(
  path: string,
  onMessage: (event: string, data: unknown) => void,
): LiveState {
  const { token } = useSession();
  const api = useApi();
  const [state, setState] = useState<LiveState>("connecting");
  const latest = useRef(onMessage);
  useEffect(() => {
    latest.current = onMessage;
  });
  useEffect(() => {
    const left = new AbortController();
    void follow(left.signal, {
      request: { path, token },
      // Answered 401 as well, which ends the session.
      onRefused: () => void api.call("GET", "/verify-token", {}).catch(() => undefined),
      onState: setState,
      onMessage: (event, data) => latest.current(event, data),
    });
    return () => left.abort();
  }, [api, path, token]);
  return state;
}

interface Following {
  readonly request: { readonly path: string; readonly token: string };
  readonly onRefused: () => void;
  readonly onState: (state: LiveState) => void;
  readonly onMessage: (event: string, data: unknown) => void;
}

async function follow(left: AbortSignal, following: Following): Promise<void> {
  for (let waitMs = FIRST_WAIT_MS; !left.aborted; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    const { onState } = following;
    const wasLive = await readStream(left, following).catch(() => false);
    if (wasLive) waitMs = FIRST_WAIT_MS;
    if (left.aborted) return;
    onState("waiting");
    await pause(waitMs, left);
  }
}

/** One connection, until it ends; whether it ever was live. */
async function readStream(
  left: AbortSignal,
  { request, onRefused, onState, onMessage }: Following,
) {
  const silent = new AbortController();
  const response = await fetch(BASE_URL + request.path, {
    headers: { Authorization: `Bearer ${request.token}`, Accept: "text/event-stream" },
    signal: AbortSignal.any([left, silent.signal]),
  });
  if (response.status === 401) onRefused();
  if (!response.ok || response.body === null) return false;
  onState("live");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return true;
      const messages = (rest + value).split("\n\n");
      rest = messages.pop() ?? "";
      for (const message of messages) pass(message, onMessage);
    }
  } catch {
    return true;
  }
}

/** Our streams have one line of data per message (src/http/event-stream.ts). */
function pass(message: string, onMessage: Following["onMessage"]): void {
  const lines = message.split("\n");
  const field = (name: string) =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field("data");
  if (data !== undefined) onMessage(field("event") ?? "message", JSON.parse(data));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
