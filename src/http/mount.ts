import { Elysia } from "elysia";

import { Problem } from "../lib/problem.ts";
import { proxyTest, readCall } from "./call.ts";
import { renderPage, type Page, type Site } from "./pages.ts";
import { refuseMethod, refuseUnknown, serveRoot, type RootRoute } from "./root-route.ts";
import { Answer, type Call, type Method, type Route } from "./route.ts";
import { render, renderError, serve, type Edge } from "./serve.ts";

/** `{base_url}` is `{server_root}` with this path. */
export const BASE_PATH = "/api/v1";

interface MountOptions {
  readonly routes: readonly Route[];
  readonly readiness: () => Promise<{ ready: boolean; checks: Record<string, "ok" | "failed"> }>;
  /** Path at `{server_root}` → a public JSON document (decisions.md 1, root pages). */
  readonly documents: Readonly<Record<string, () => unknown>>;
  readonly pages?: readonly Page[];
  readonly sites?: readonly Site[];
  readonly rootRoutes?: readonly RootRoute[];
  readonly trustedProxies: readonly string[];
}

/** Mounts the routes. Elysia finds the route; everything after that is `serve`, in an order of its own. */
export function mount(edge: Edge, options: MountOptions) {
  const { routes, readiness, documents, trustedProxies } = options;
  const isProxy = proxyTest(trustedProxies);
  const app = new Elysia({ normalize: false });
  const callOf = (request: Request): Call =>
    readCall(request.headers, app.server?.requestIP(request)?.address ?? "127.0.0.1", isProxy);

  for (const one of routes) {
    app.route(
      one.method,
      BASE_PATH + one.path,
      ({ request, params }: { request: Request; params: Record<string, string> }) =>
        serve(edge, one, { request, params, call: callOf(request) }),
      { parse: "none" },
    );
  }
  for (const [path, methods] of methodsByPath(routes)) {
    // Elysia answers HEAD from the GET route.
    const known = methods.has("GET") ? [...methods, "HEAD"] : [...methods];
    app.all(
      BASE_PATH + path,
      ({ request }: { request: Request }) => {
        const problem = new Problem("method_not_allowed", { headers: { Allow: known.join(", ") } });
        return renderError(edge.log, problem, callOf(request));
      },
      { parse: "none" },
    );
  }
  mountRoot(app, edge, options.rootRoutes ?? [], callOf);
  const look = (path: string, respond: (request: Request, call: Call) => unknown) => {
    app.get(path, async ({ request }) => {
      const call = callOf(request);
      try {
        return await respond(request, call);
      } catch (error) {
        // Elysia's own answer would be the error's text.
        return renderError(edge.log, error, call);
      }
    });
    app.all(path, ({ request }: { request: Request }) => {
      const problem = new Problem("method_not_allowed", { headers: { Allow: "GET, HEAD" } });
      return renderError(edge.log, problem, callOf(request));
    });
  };
  for (const [path, document] of Object.entries(documents))
    look(path, (_, call) => render(document(), call));
  for (const page of options.pages ?? []) look(page.path, (_, call) => renderPage(page, call));
  for (const { path, respond } of options.sites ?? [])
    for (const below of [path, `${path}/*`]) look(below, respond);
  look("/healthz", (_, call) => render({ status: "ok" }, call));
  look("/readyz", async (_, call) => {
    const { ready, checks } = await readiness();
    const body = { status: ready ? "ok" : "unavailable", checks };
    return render(new Answer(ready ? 200 : 503, body), call);
  });
  app.onError(({ error, code, request }) =>
    renderError(edge.log, code === "NOT_FOUND" ? new Problem("not_found") : error, callOf(request)),
  );
  return app;
}

function methodsByPath(routes: readonly Route[]): Map<string, Set<Method>> {
  const methods = new Map<string, Set<Method>>();
  for (const { path, method } of routes)
    methods.set(path, (methods.get(path) ?? new Set()).add(method));
  return methods;
}

function mountRoot(
  app: Pick<Elysia, "route" | "all">,
  edge: Edge,
  routes: readonly RootRoute[],
  callOf: (request: Request) => Call,
): void {
  for (const one of routes)
    app.route(
      one.method,
      one.path,
      ({ request }: { request: Request }) =>
        serveRoot(edge, one, { request, call: callOf(request) }),
      { parse: "none" },
    );
  // An unknown path beside these is refused in the words of the first of them.
  const folders = new Map(
    routes.toReversed().map((one) => [one.path.replace(/\/[^/]*$/, ""), one]),
  );
  for (const [folder, neighbour] of folders)
    for (const path of [folder, `${folder}/*`])
      app.all(path, ({ request }: { request: Request }) =>
        refuseUnknown(neighbour, callOf(request)),
      );
  for (const path of new Set(routes.map((one) => one.path)))
    app.all(
      path,
      ({ request }: { request: Request }) => refuseMethod(routes, path, callOf(request)),
      { parse: "none" },
    );
}
