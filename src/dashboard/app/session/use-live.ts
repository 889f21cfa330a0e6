import { useEffect, useRef, useState } from "react";

import { followStream, type LiveState, type StreamReader } from "../api/event-stream.ts";
import { readIdentity } from "./identity.ts";
import { useApi, useSession } from "./session.tsx";

/** Follows `text/event-stream` at a path below `{base_url}` for as long as the component is shown. */
export function useLive(path: string, onMessage: StreamReader["onMessage"]): LiveState {
  const { token } = useSession();
  const api = useApi();
  const [state, setState] = useState<LiveState>("connecting");
  const latest = useRef(onMessage);
  useEffect(() => {
    latest.current = onMessage;
  });
  useEffect(() => {
    const left = new AbortController();
    const reader: StreamReader = {
      onState: setState,
      onMessage: (event, data) => latest.current(event, data),
      // This call is answered 401 as well, which ends the session.
      onUnauthorized: () => void readIdentity(api).catch(() => undefined),
    };
    void followStream(left.signal, { path, token }, reader);
    return () => left.abort();
  }, [api, path, token]);
  return state;
}
