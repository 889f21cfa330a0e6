import type { Static, TObject, TSchema } from "@sinclair/typebox";

import type { FieldErrors } from "../lib/problem.ts";
import type { Call } from "./call.ts";
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
