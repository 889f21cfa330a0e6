import { Elysia } from "elysia";

export interface Readiness {
  readonly ready: boolean;
  /** By the name of the store. */
  readonly checks: Readonly<Record<string, "ok" | "failed">>;
}

/** `/healthz` tells that the process is alive, `/readyz` whether it can do its work (decisions.md 1, root pages). */
export function health(readiness: () => Promise<Readiness>) {
  return new Elysia({ name: "health" })
    .get("/healthz", () => ({ status: "ok" }))
    .get("/readyz", async ({ set }) => {
      const { ready, checks } = await readiness();
      set.status = ready ? 200 : 503;
      return { status: ready ? "ok" : "unavailable", checks };
    });
}
