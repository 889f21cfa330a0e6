import type { Static, TObject, TSchema } from "@sinclair/typebox";

import { type FieldErrors, invalid } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import type { ValidParts } from "./fields.ts";
import type { Principal } from "./principal.ts";

/** What rules say of fields: field path → the sentence, or undefined where there is nothing to say. */
export type RuleErrors = Readonly<Record<string, string | undefined>>;

/**
 * What a rule judges: the fields that have their shape, while others may be malformed or missing. The records that the
 * path names stand beside them, by the names of their macros.
 */
export interface RuleInput<B extends TSchema, Q extends TObject = TObject> {
  readonly principal: Principal;
  readonly requestContext: RequestContext;
  readonly body: ValidParts<Static<B>>;
  readonly query: ValidParts<Static<Q>>;
}

/**
 * Says of every field at once what no schema can: its words and the schema's make one 422. A rule over two fields is
 * silent unless both are sound. It may look things up and writes nothing; what may change until the handler's
 * transaction is decided there once more.
 */
export type FieldRules = (input: never) => RuleErrors | Promise<RuleErrors>;

export function toFieldErrors(said: RuleErrors): FieldErrors {
  const fieldErrors: FieldErrors = {};
  for (const [field, text] of Object.entries(said))
    if (text !== undefined) fieldErrors[field] = [text];
  return fieldErrors;
}

export function throwFieldErrors(fieldErrors: FieldErrors): void {
  if (Object.keys(fieldErrors).length > 0) throw invalid(fieldErrors);
}
