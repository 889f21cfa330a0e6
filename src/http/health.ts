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
  summary: "Tell whether the process is ready",
  description: "Not while Postgres is away, a key is missing, or it drains.",
  responses: {
    "200": { description: "Ready; `degraded` without Redis.", content: object },
    "503": { description: "Not ready; `checks` says why.", content: object },
  },
};
