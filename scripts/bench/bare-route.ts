// Measures the bare cost of an Elysia route: no check, no database, one small JSON response.
import { Elysia } from "elysia";

/** The path of this file, which is also a program: it reports its address and ends with its parent. */
export const BARE_ROUTE = import.meta.path;

if (import.meta.main) {
  const app = new Elysia().get("/", () => ({ status: "ok" }));
  app.listen({ port: 0, hostname: "127.0.0.1" });
  process.send?.({ root: `http://127.0.0.1:${app.server?.port}` });
  process.on("disconnect", () => process.exit(0));
}
