import type { Static, TObject, TSchema } from "@sinclair/typebox";

import { type FieldErrors, invalid } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import type { ValidParts } from "./fields.ts";
import type { Principal } from "./principal.ts";

/** Error messages of rules by field path. Undefined means that the field has no error. */
export type RuleErrors = Readonly<Record<string, string | undefined>>;

/**
 * The input of a field rule: the valid fields of the request. A malformed field is undefined, and a missing field is
 * absent. The objects that the path identifies are added under the names of their macros.
 */
export interface RuleInput<B extends TSchema, Q extends TObject = TObject> {
  readonly principal: Principal;
  readonly requestContext: RequestContext;
  readonly body: ValidParts<Static<B>>;
  readonly query: ValidParts<Static<Q>>;
}

/**
 * Validation rules that no schema can express. The errors of rules and schemas form one 422. A rule over two fields
 * must return nothing unless both fields are valid. A rule may read the database but must not write. Conditions that
 * may change before the handler's transaction are checked again in that transaction.
 */
export type FieldRules = (input: never) => RuleErrors | Promise<RuleErrors>;

export function toFieldErrors(ruleErrors: RuleErrors): FieldErrors {
  const fieldErrors: FieldErrors = {};
  for (const [field, text] of Object.entries(ruleErrors))
    if (text !== undefined) fieldErrors[field] = [text];
  return fieldErrors;
}

export function throwFieldErrors(fieldErrors: FieldErrors): void {
  if (Object.keys(fieldErrors).length > 0) throw invalid(fieldErrors);
}
