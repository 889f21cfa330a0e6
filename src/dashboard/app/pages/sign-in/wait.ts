import { useState } from "react";

import { problemOf } from "../../ui/explain.ts";
import { useCountdown } from "../../ui/time.tsx";

/** Where Retry-After is missing. */
const UNKNOWN_WAIT_S = 5;

/** What went wrong last, and the seconds until the server takes another try; 0 where it would take one now. */
export function useProblem() {
  const [problem, setProblem] = useState<{ error: unknown; until: number | undefined }>();
  const wait = useCountdown(problem?.until);
  const report = (error: unknown) => {
    const answer = problemOf(error);
    const waitS = answer?.status === 429 ? (answer.retryAfterS ?? UNKNOWN_WAIT_S) : undefined;
    setProblem({ error, until: waitS && Date.now() + waitS * 1_000 });
  };
  return { error: problem?.error, wait, report, dismiss: () => setProblem(undefined) };
}
