import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";

import { toYaml } from "../../lib/yaml.ts";
import { servedFiles } from "../files.ts";
import { completeOperation, type RouteHooks } from "./operation.ts";
import { refusal } from "./refusals.ts";
import type { Components, Json, JsonObject } from "./schemas.ts";
import { securitySchemes } from "./security.ts";
import { inPlace } from "./single-use.ts";
import { HEADERS, INTRODUCTION, PROBLEM, TAGS, VALIDATION_PROBLEM, VERSION } from "./texts.ts";

/** What the description says of requests that we send, in whose words a domain writes it. */
export type DescribeWebhooks = (components: Components) => JsonObject;

/**
 * `/openapi.json` and `.yaml`: the API as OpenAPI 3.1, made from the routes of `app` when it is first asked for, and
 * served as bytes from then on: to write a quarter of a megabyte anew for each stranger would keep all others waiting.
 */
export function apiDescription(app: AnyElysia, serverRoot: string, webhooks: DescribeWebhooks) {
  let made: JsonObject | undefined;
  const describe = () => (made ??= describeApi(app, serverRoot, webhooks));
  return servedFiles([
    {
      path: "/openapi.json",
      contentType: "application/json",
      body: () => JSON.stringify(describe()),
      detail: {
        tags: ["Documents"],
        operationId: "getOpenapiJson",
        summary: "Get this document",
        description: "`info.version` counts its changes.",
      },
    },
    {
      path: "/openapi.yaml",
      contentType: "application/yaml",
      body: () => toYaml(describe()),
      detail: {
        tags: ["Documents"],
        operationId: "getOpenapiYaml",
        summary: "Get this document as YAML",
        description: "The same, word for word.",
        responses: {
          "200": {
            description: "The document.",
            content: {
              "application/yaml": { schema: { type: "object" }, example: { openapi: "3.1.0" } },
            },
          },
        },
      },
    },
  ]);
}

/**
 * Makes the document with @elysiajs/openapi and completes what it cannot say: the errors that the checks of a route
 * answer, the headers of every answer, examples, a name for each operation, and schemas by reference where they have a
 * title, so that each stands there once.
 */
function describeApi(
  app: AnyElysia,
  serverRoot: string,
  describeWebhooks: DescribeWebhooks,
): JsonObject {
  const components: Components = {
    schemas: { Problem: PROBLEM, ValidationProblem: VALIDATION_PROBLEM },
    responses: { 405: refusal(["method_not_allowed"]), 500: refusal(["internal_error"]) },
    parameters: {},
    requestBodies: {},
  };
  const hooks = hooksByOperation(app);
  const names = new Set<string>();
  const made = toOpenAPISchema(app, { methods: ["all", "head", "options"], staticFile: false });
  const paths: Record<string, JsonObject> = {};
  for (const [path, item] of Object.entries(made.paths))
    for (const [method, operation] of Object.entries(Object(item))) {
      const route = { path, method, hooks: hooks.get(`${method} ${path}`) ?? {}, names };
      const completed = completeOperation(asJson(operation), route, components);
      (paths[path] ??= {})[method] = withoutTheUsual(completed);
    }
  const used = new Set(Object.values(paths).flatMap((item) => Object.values(item).flatMap(tagsOf)));
  return inPlace({
    openapi: "3.1.0",
    info: {
      title: "ReviewRelay API",
      version: VERSION,
      summary: "Sign-in, reviews and partner webhooks",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: serverRoot }],
    security: MOST_NEED,
    tags: TAGS.filter(({ name }) => used.has(name)).map((tag) => ({ ...tag })),
    paths,
    webhooks: describeWebhooks(components),
    components: {
      ...components,
      headers: HEADERS,
      securitySchemes: securitySchemes(serverRoot),
    },
  });
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

/** What most operations ask of a caller: it stands once, for the document. */
const MOST_NEED = [{ bearer: ["*"] }, { oauth: ["*"] }];

/** An operation says what it asks for only where that is something else, or nothing. */
function withoutTheUsual({ security = [], ...operation }: JsonObject): JsonObject {
  const isUsual = JSON.stringify(security) === JSON.stringify(MOST_NEED);
  return isUsual ? operation : { ...operation, security };
}

/** Without symbols and functions, which schemas carry for TypeBox. */
function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

function tagsOf(operation: Json | undefined): string[] {
  const tags: unknown = Reflect.get(Object(operation), "tags");
  return Array.isArray(tags) ? tags.filter((one) => typeof one === "string") : [];
}
