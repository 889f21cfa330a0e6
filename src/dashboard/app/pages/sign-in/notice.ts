import { useEffect, useRef, useState } from "react";

import { apiErrorOf } from "../../api/api-error.ts";
import { useCredentials } from "../../session/credentials.ts";
import { useSessionState } from "../../session/session.tsx";
import type { Arrival } from "../../session/single-sign-on.ts";
import { explain } from "../../ui/explain.ts";

/** The sign-in says it before anybody does anything. */
export interface Notice {
  readonly title: string;
  readonly advice: string;
  readonly isError: boolean;
}

/** Redeems what a single sign-on brought back, and says how the last session or the last trip ended. */
export function useNotice() {
  const { arrival, ended } = useSessionState();
  const { isArriving, failure } = useArrival();
  const [isDismissed, setDismissed] = useState(false);
  const ofTrip = failure === undefined ? ofArrival(arrival) : ofFailure(failure);
  const notice = ended === undefined ? ofTrip : OF_ENDING[ended];
  const dismiss = () => setDismissed(true);
  return { notice: isDismissed ? undefined : notice, isArriving, dismiss };
}

/** Signs in with the code of a single sign-on, where one was brought back; the code counts once. */
function useArrival() {
  const { arrival, signIn } = useSessionState();
  const { exchangeCode } = useCredentials();
  const [failure, setFailure] = useState<unknown>();
  const isBegun = useRef(false);
  const isArriving = arrival.kind === "code" && failure === undefined;
  useEffect(() => {
    if (arrival.kind !== "code" || isBegun.current) return;
    isBegun.current = true;
    const { code, trip } = arrival;
    exchangeCode(code, trip.verifier)
      .then((session) => signIn(session, { remember: trip.remember }))
      .catch(setFailure);
  }, [arrival, exchangeCode, signIn]);
  return { isArriving, failure };
}

const OF_ENDING = {
  expired: {
    title: "You were signed out",
    advice: "Your session ended: it was over a day old, or ended elsewhere. Sign in to go on.",
    isError: false,
  },
  signed_out: { title: "You are signed out", advice: "See you soon.", isError: false },
  unconfirmed: {
    title: "You are signed out here",
    advice:
      "But the server could not be told, so that the session may live for up to a day. Sign in again and end it under Security.",
    isError: true,
  },
} as const satisfies Record<string, Notice>;

function ofArrival(arrival: Arrival): Notice | undefined {
  if (arrival.kind === "refused")
    return {
      title: "Single sign-on did not work",
      advice:
        "Your company's identity provider did not let you in here. Try again; if it stays like this, ask whoever looks after your company's accounts.",
      isError: true,
    };
  if (arrival.kind === "stray")
    return {
      title: "Nobody was signed in",
      advice:
        "The link carried a sign-in that did not begin in this tab, so it was not used: it might be somebody else's. Begin here.",
      isError: true,
    };
  return undefined;
}

function ofFailure(error: unknown): Notice {
  if (apiErrorOf(error)?.code === "invalid_code")
    return {
      title: "Single sign-on did not work",
      advice: "It took longer than a minute to come back, or was used already. Try again.",
      isError: true,
    };
  const { title, advice } = explain(error);
  return { title, advice, isError: true };
}
