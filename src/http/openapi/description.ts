import { toOpenAPISchema } from "@elysiajs/openapi";
import { Elysia, type AnyElysia } from "elysia";

import { completeOperation, type RouteHooks } from "./operation.ts";
import {
  HEADERS,
  INTRODUCTION,
  PROBLEM,
  REQUEST_ID,
  TAGS,
  TOO_LONG,
  VALIDATION_PROBLEM,
} from "./texts.ts";
import type { Components, Json, JsonObject } from "./schemas.ts";

/** `/openapi.json`: the API as OpenAPI 3.1, made from the routes of `app` when it is first asked for. */
export function apiDescription(app: AnyElysia, serverRoot: string) {
  let made: JsonObject | undefined;
  return new Elysia().get("/openapi.json", () => (made ??= describeApi(app, serverRoot)), {
    detail: { operationId: "getOpenapiJson", summary: "Get this document", tags: ["Documents"] },
  });
}

/**
 * Makes the document with @elysiajs/openapi and completes what it cannot say: the errors that the checks of a route
 * answer, the headers of every answer, examples, a name for each operation, and schemas by reference where they have a
 * title, so that each stands there once.
 */
function describeApi(app: AnyElysia, serverRoot: string): JsonObject {
  const components: Components = {
    schemas: { Problem: PROBLEM, ValidationProblem: VALIDATION_PROBLEM },
    responses: { TooLong: TOO_LONG },
  };
  const hooks = hooksByOperation(app);
  const names = new Set<string>();
  const made = toOpenAPISchema(app, { methods: ["all", "head", "options"], staticFile: false });
  const paths: Record<string, JsonObject> = {};
  for (const [path, item] of Object.entries(made.paths))
    for (const [method, operation] of Object.entries(Object(item))) {
      const route = { path, method, hooks: hooks.get(`${method} ${path}`) ?? {}, names };
      (paths[path] ??= {})[method] = completeOperation(asJson(operation), route, components);
    }
  const used = new Set(Object.values(paths).flatMap((item) => Object.values(item).flatMap(tagsOf)));
  return {
    openapi: "3.1.0",
    info: {
      title: "ReviewRelay API",
      version: "1.0.0",
      summary: "Sign-in, reviews and partner webhooks",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: serverRoot }],
    security: [],
    tags: TAGS.filter(({ name }) => used.has(name)).map((tag) => ({ ...tag })),
    paths,
    components: {
      schemas: components.schemas,
      responses: components.responses,
      parameters: { RequestId: REQUEST_ID },
      headers: HEADERS,
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "JWT",
          description: "A personal access token, or one from a sign-in.",
        },
      },
    },
  };
}

/** `get /path/{id}` → what the route declares. */
function hooksByOperation(app: AnyElysia): Map<string, RouteHooks> {
  return new Map(
    app.routes.map(({ method, path, hooks }) => [
      `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
      hooks,
    ]),
  );
}

/** Without symbols and functions, which schemas carry for TypeBox. */
function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

function tagsOf(operation: Json | undefined): string[] {
  const tags: unknown = Reflect.get(Object(operation), "tags");
  return Array.isArray(tags) ? tags.filter((one) => typeof one === "string") : [];
}
