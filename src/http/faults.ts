import { Type, type Static, type TSchema, type TUnknown } from "@sinclair/typebox";

import { Problem, type FieldErrors } from "../lib/problem.ts";
import { check } from "./check.ts";

/** What a caller has to send, although the handler gets it unchecked. */
export interface CheckedByHandler<T extends TSchema> extends TUnknown {
  readonly sent?: T;
}

/**
 * A body that the handler checks itself, because rules that no schema can say belong into the same 422. The schema
 * still describes the route.
 */
export function checkedByHandler<T extends TSchema>(schema: T): CheckedByHandler<T> {
  return Type.Unknown({ ...schema });
}

/** The value if it has the shape, else what is wrong with it, each field under `prefix`. */
export function shapeOf<T extends TSchema>(
  schema: T,
  value: unknown,
  prefix = "",
): { value: Static<T> } | { faults: FieldErrors } {
  try {
    return { value: check(schema, value) };
  } catch (error) {
    if (!(error instanceof Problem) || error.errors === undefined) throw error;
    const faults = Object.entries(error.errors).map(([field, texts]) => [
      // The value itself has a bad shape, not one of its fields.
      field === "body" && prefix !== "" ? prefix.slice(0, -1) : prefix + field,
      texts,
    ]);
    return { faults: Object.fromEntries(faults) };
  }
}
