import { describe, expect, test } from "bun:test";

import { explore, MODEL_FAULTS, type ModelOptions } from "../simulation/log-model.ts";

describe("the log of a subscription", () => {
  test(
    "loses, doubles and overtakes nothing, whatever happens when",
    () => {
      for (const options of all())
        expect({ ...options, violation: explore(options).violation }).toEqual({
          ...options,
          violation: undefined,
        });
    },
    TIMEOUT_MS,
  );

  test.each(MODEL_FAULTS)(
    "breaks an invariant with the error %s",
    (injected) => {
      const isFound = all(injected).some((options) => explore(options).violation !== undefined);
      expect(isFound).toBe(true);
    },
    TIMEOUT_MS,
  );
});

/** More than a million states are visited, which takes a minute on a busy core. */
const TIMEOUT_MS = 300_000;

/** What happens, and the entries of two reviews to which it does; small letters have rows at once. */
const CASES: readonly [events: string, entries: readonly string[]][] = [
  ["append", ["ABAB", "ABbA", "AbaB"]],
  ["wait", ["ABb", "ABA"]],
  ["append takeover", ["ABb"]],
  ["append takeover skip order", ["ABA"]],
  ["append wait takeover skip order", ["AA", "Aa", "AB", "Ab"]],
];

function* all(injected?: ModelOptions["injected"]): Generator<ModelOptions> {
  for (const [events, queues] of CASES)
    for (const entries of queues)
      for (const ordering of ["review", "subscription"] as const)
        yield { events, entries, ordering, injected };
}
