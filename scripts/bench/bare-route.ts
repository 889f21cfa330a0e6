// A process with the bare cost of an Elysia route: no check, no database, one small JSON response. It reports its
// address to its parent and ends with it.
import { Elysia } from "elysia";

const app = new Elysia()
  .get("/", () => ({ status: "ok" }))
  .listen({ port: 0, hostname: "127.0.0.1" });
process.send?.({ root: `http://127.0.0.1:${app.server?.port}` });
process.on("disconnect", () => process.exit(0));
