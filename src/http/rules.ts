import type { Static, TObject, TSchema } from "@sinclair/typebox";

import { invalid, type FieldErrors } from "../lib/problem.ts";
import type { Call } from "./call.ts";
import type { Exchange } from "./exchange.ts";
import type { SoundParts } from "./fields.ts";
import type { Principal } from "./principal.ts";

/** What rules say of fields: field path → the sentence, or undefined where there is nothing to say. */
export type FieldFaults = Readonly<Record<string, string | undefined>>;

/**
 * What a rule judges: the fields that have their shape, while others may be malformed or missing. The records that the
 * path names stand beside them, by the names of their macros.
 */
export interface Judged<B extends TSchema, Q extends TObject = TObject> {
  readonly principal: Principal;
  readonly call: Call;
  readonly body: SoundParts<Static<B>>;
  readonly query: SoundParts<Static<Q>>;
}

/**
 * Says of every field at once what no schema can: its words and the schema's make one 422. A rule over two fields is
 * silent unless both are sound. It may look things up and writes nothing; what may change until the handler's
 * transaction is decided there once more.
 */
export type FieldRules = (input: never) => FieldFaults | Promise<FieldFaults>;

export function faultsOf(said: FieldFaults): FieldErrors {
  const faults: FieldErrors = {};
  for (const [field, text] of Object.entries(said)) if (text !== undefined) faults[field] = [text];
  return faults;
}

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
