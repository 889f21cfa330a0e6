import { useSearchParams } from "wouter";

export type Stack = "outcome" | "event";

/** What the bars of a chart are parts of; it is in the address. */
export function useStack(): readonly [Stack, (next: Stack) => void] {
  const [params, setParams] = useSearchParams();
  const stack = params.get("stack") === "event" ? "event" : "outcome";
  const set = (next: Stack) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (next === "event") after.set("stack", next);
        else after.delete("stack");
        return after;
      },
      { replace: true },
    );
  return [stack, set];
}
