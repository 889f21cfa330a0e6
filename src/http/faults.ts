import { Type, type Static, type TSchema, type TUnknown } from "@sinclair/typebox";

import type { FieldErrors } from "../lib/problem.ts";
import { examine, type Examined } from "./check.ts";

/** What a caller has to send, although the handler gets it unchecked. */
export interface CheckedByHandler<T extends TSchema> extends TUnknown {
  readonly sent?: T;
}

/**
 * A body that the handler checks itself: one that no schema can look through (a union names no field), or where the
 * words of a rule replace those of the schema. The schema still describes the route. Any other route says in its `rules`
 * what its schemas cannot.
 */
export function checkedByHandler<T extends TSchema>(schema: T): CheckedByHandler<T> {
  return Type.Unknown({ ...schema });
}

/** `examine` with each field under `prefix`. */
export function shapeOf<T extends TSchema>(
  schema: T,
  value: unknown,
  prefix = "",
): Examined<Static<T>> {
  const examined = examine(schema, value);
  if ("value" in examined) return examined;
  const faults = Object.entries(examined.faults).map(([field, texts]) => [
    // The value itself has a bad shape, not one of its fields.
    field === "body" && prefix !== "" ? prefix.slice(0, -1) : prefix + field,
    texts,
  ]);
  return { ...examined, faults: Object.fromEntries(faults) };
}

/** What rules say of fields: undefined where there is nothing to say. */
export type Told = Readonly<Record<string, string | undefined>>;

export function faultsOf(told: Told): FieldErrors {
  const faults: FieldErrors = {};
  for (const [field, text] of Object.entries(told)) if (text !== undefined) faults[field] = [text];
  return faults;
}
