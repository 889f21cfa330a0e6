import { useCallback, useEffect, useRef, useState } from "react";

/** Proof of a second factor that a request to the API waits for. */
export interface AskedProof {
  /** True if the request changes the user's own second factors. */
  readonly isOfFactors: boolean;
  /** Ends the wait of the requests. With true they are repeated; otherwise they fail with the API's refusal. */
  readonly answer: (isProved: boolean) => void;
}

/**
 * Holds the proof that requests of a session wait for. Requests that the API refuses while the user is asked wait for
 * the same proof. When the session ends, all waiting requests fail.
 */
export function useAskedProof(token: string | undefined) {
  const [asked, setAsked] = useState<AskedProof>();
  const proof = useRef<Promise<boolean>>(undefined);
  const end = useRef<AskedProof["answer"]>(undefined);
  const ask = useCallback((address: string) => {
    proof.current ??= new Promise((resolve) => {
      const answer = (isProved: boolean) => {
        proof.current = undefined;
        setAsked(undefined);
        resolve(isProved);
      };
      end.current = answer;
      setAsked({ isOfFactors: address.includes("/account/second-factors"), answer });
    });
    return proof.current;
  }, []);
  useEffect(() => {
    if (token === undefined) return undefined;
    return () => end.current?.(false);
  }, [token]);
  return { asked, ask };
}
