import { Type, type TUnsafe } from "@sinclair/typebox";

import { SCOPES } from "./principal.ts";

/** One of the values. The type is said by hand: Elysia infers `never` from a union whose members are a list. */
export function literals<const T extends string | number>(
  values: readonly T[],
  options: { readonly [name: string]: unknown } = {},
): TUnsafe<T> {
  return Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  );
}

/** One of the scopes. */
export const scopeValue = literals(SCOPES, { title: "Scope", description: "What a token covers." });
