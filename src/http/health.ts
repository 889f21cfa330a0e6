import { Elysia, type DocumentDecoration } from "elysia";

import { showReadiness, type Readiness } from "../lib/readiness.ts";

/** `/healthz` tells that the process is alive, `/readyz` whether it can do its work (contract 2.12). */
export function health(readiness: () => Promise<Readiness>) {
  return new Elysia({ name: "health", tags: ["Documents"] })
    .get("/healthz", () => ({ status: "ok" }), {
      detail: {
        operationId: "getHealthz",
        summary: "Tell that the process is alive",
        description: "Without a look at its stores.",
      },
    })
    .get(
      "/readyz",
      async ({ set }) => {
        const { status, body } = showReadiness(await readiness());
        set.status = status;
        return body;
      },
      { detail: READYZ_DETAIL },
    );
}

const object = { "application/json": { schema: { type: "object" } } } as const;
const READYZ_DETAIL: DocumentDecoration = {
  operationId: "getReadyz",
  summary: "Tell whether the stores answer",
  description: "503 while a store is away, or the process drains.",
  responses: {
    "200": { description: "Tell whether the stores answer", content: object },
    "503": {
      description: "A store is away (`checks` says which), or the process is about to stop.",
      content: object,
    },
  },
};
