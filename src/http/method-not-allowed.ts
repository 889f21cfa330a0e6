import type { AnyElysia } from "elysia";

import { Problem } from "../lib/problem.ts";

/**
 * Answers every other method of the paths that exist with a 405 and `Allow` (RFC 9110, 15.5.6); Elysia would say 404.
 * Call it when all routes are there. Elysia answers HEAD from GET; where GET has an effect, HEAD is refused here
 * (contract 2.6).
 */
export function refuseOtherMethods(app: AnyElysia, getHasEffect: ReadonlySet<string>): void {
  const methods = new Map<string, string[]>();
  for (const { path, method } of app.routes)
    methods.set(path, [...(methods.get(path) ?? []), method]);
  for (const [path, known] of methods) {
    const answersHead = !getHasEffect.has(path);
    const allow = known
      .flatMap((method) => (method === "GET" && answersHead ? ["GET", "HEAD"] : [method]))
      .join(", ");
    const refuse = () => {
      throw new Problem("method_not_allowed", { headers: { Allow: allow } });
    };
    if (getHasEffect.has(path)) app.head(path, refuse, { detail: { hide: true } });
    app.all(path, refuse, { parse: "none", detail: { hide: true } });
  }
}
