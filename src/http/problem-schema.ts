import { Type } from "@sinclair/typebox";

import type { ProblemCode } from "../lib/problem.ts";

/** The body of an error that a route answers besides those of its checks, for its description and its client. */
export function problem<const C extends readonly ProblemCode[]>(...codes: C) {
  return Type.Object(
    {
      message: Type.String(),
      code: Type.Unsafe<C[number]>(Type.String({ enum: codes })),
      request_id: Type.String(),
    },
    { problems: codes },
  );
}
