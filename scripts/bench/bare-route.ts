// The bare cost of an Elysia route: no check, no database, one small JSON answer.
import { Elysia } from "elysia";

/** This file: started as a process of its own, it says where it listens and ends with its parent. */
export const BARE_ROUTE = import.meta.path;

if (import.meta.main) {
  const app = new Elysia().get("/", () => ({ status: "ok" }));
  app.listen({ port: 0, hostname: "127.0.0.1" });
  process.send?.({ root: `http://127.0.0.1:${app.server?.port}` });
  process.on("disconnect", () => process.exit(0));
}
