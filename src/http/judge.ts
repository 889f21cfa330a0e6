import { invalid, type FieldErrors } from "../lib/problem.ts";
import type { Exchange } from "./exchange.ts";
import { faultsOf, type FieldRules } from "./rules.ts";

/** Asks a route's rules; without a body to speak of they have nothing to say. */
export async function runRules(
  rules: FieldRules | undefined,
  { found, principal, call }: Exchange,
  { body, query }: { readonly body: unknown; readonly query: unknown },
): Promise<FieldErrors> {
  if (rules === undefined) return {};
  // What the rules take follows from the schemas of their own route, which no type of this function can say.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const input = { ...found, principal, call, body, query } as never;
  return faultsOf(await rules(input));
}

export function refuseFaults(faults: FieldErrors): void {
  if (Object.keys(faults).length > 0) throw invalid(faults);
}
