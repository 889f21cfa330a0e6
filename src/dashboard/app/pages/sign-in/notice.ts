import { useEffect, useRef, useState } from "react";

import type { Arrival } from "../../single-sign-on.ts";
import { useSessionState } from "../../session.tsx";
import { explain, problemOf } from "../../ui/explain.ts";

/** What the sign-in says before anybody does anything. */
export interface Notice {
  readonly title: string;
  readonly advice: string;
  readonly isFault: boolean;
}

/** Redeems what a single sign-on brought back, and says how the last session or the last trip ended. */
export function useNotice() {
  const { arrival, ended, api, signIn } = useSessionState();
  const [told, setTold] = useState(() => ofArrival(arrival));
  const [isArriving, setArriving] = useState(arrival.kind === "code");
  const [isDismissed, setDismissed] = useState(false);
  const isBegun = useRef(false);
  useEffect(() => {
    // The code counts once; what a later session ended with is another matter.
    if (arrival.kind !== "code" || !isArriving || isBegun.current) return;
    isBegun.current = true;
    const { code, trip } = arrival;
    api
      .call("GET", "/auth/sso/exchange", { query: { code, code_verifier: trip.verifier } })
      .then((session) => signIn(session, { remember: trip.remember }))
      .catch((error: unknown) => {
        setTold(ofFailure(error));
        setArriving(false);
      });
  }, [api, arrival, isArriving, signIn]);
  const notice = ended === undefined ? told : OF_ENDING[ended];
  const dismiss = () => setDismissed(true);
  return { notice: isDismissed ? undefined : notice, isArriving, dismiss };
}

const OF_ENDING = {
  expired: {
    title: "You were signed out",
    advice: "Your session ended: it was over a day old, or ended elsewhere. Sign in to go on.",
    isFault: false,
  },
  signed_out: { title: "You are signed out", advice: "See you soon.", isFault: false },
  unconfirmed: {
    title: "You are signed out here",
    advice:
      "But the server could not be told, so that the session may live for up to a day. Sign in again and end it under Security.",
    isFault: true,
  },
} as const satisfies Record<string, Notice>;

function ofArrival(arrival: Arrival): Notice | undefined {
  if (arrival.kind === "refused")
    return {
      title: "Single sign-on did not work",
      advice:
        "Your company's identity provider did not let you in here. Try again; if it stays like this, ask whoever looks after your company's accounts.",
      isFault: true,
    };
  if (arrival.kind === "stray")
    return {
      title: "Nobody was signed in",
      advice:
        "The link carried a sign-in that did not begin in this tab, so it was not used: it might be somebody else's. Begin here.",
      isFault: true,
    };
  return undefined;
}

function ofFailure(error: unknown): Notice {
  if (problemOf(error)?.code === "invalid_code")
    return {
      title: "Single sign-on did not work",
      advice: "It took longer than a minute to come back, or was used already. Try again.",
      isFault: true,
    };
  const { title, advice } = explain(error);
  return { title, advice, isFault: true };
}
