import { Elysia, type DocumentDecoration } from "elysia";

export interface Readiness {
  readonly ready: boolean;
  /** By the name of the store. */
  readonly checks: Readonly<Record<string, "ok" | "failed">>;
  /** What this machine's clock is ahead of Postgres', which stops no request; absent where nobody compares them. */
  readonly clockSkewMs?: number | undefined;
}

/** `/healthz` tells that the process is alive, `/readyz` whether it can do its work (contract 2.12). */
export function health(readiness: () => Promise<Readiness>) {
  return new Elysia({ name: "health", tags: ["Documents"] })
    .get("/healthz", () => ({ status: "ok" }), {
      detail: { operationId: "getHealthz", summary: "Tell that the process is alive" },
    })
    .get(
      "/readyz",
      async ({ set }) => {
        const { ready, checks, clockSkewMs } = await readiness();
        set.status = ready ? 200 : 503;
        const status = ready ? "ok" : "unavailable";
        return { status, checks, clock_skew_ms: clockSkewMs };
      },
      { detail: READYZ_DETAIL },
    );
}

const object = { "application/json": { schema: { type: "object" } } } as const;
const READYZ_DETAIL: DocumentDecoration = {
  operationId: "getReadyz",
  summary: "Tell whether the stores answer",
  responses: {
    "200": { description: "Tell whether the stores answer", content: object },
    "503": { description: "A store is away; `checks` says which.", content: object },
  },
};
