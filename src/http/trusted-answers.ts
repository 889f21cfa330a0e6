import { t, type AnyElysia } from "elysia";

/**
 * Lets answers pass unchecked: their schemas type the handlers, describe the API and hold its tests. At run time a check
 * could only turn a write that is committed already into an error, and cost time. Call it when all routes are there.
 *
 * Each route gets copies. A schema may stand in a body as well, where it is checked; and Elysia, which closes the schemas
 * of a route when that is first called, would otherwise change what the description says elsewhere.
 */
export function trustAnswers(app: AnyElysia): void {
  for (const { hooks } of app.routes)
    for (const [status, schema] of Object.entries(Object(hooks.response)))
      hooks.response[status] = t.NoValidate({ additionalProperties: true, ...Object(schema) });
}
