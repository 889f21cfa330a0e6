import { FIELDS } from "../http/openapi/fields.ts";
import { CATALOG } from "../outbox/event.ts";
import { exampleBodyOf } from "./event-examples.ts";
import { FULL_BODIES } from "./event-model.ts";

/** Every event value with the JSON Schema of its full body and an example (contract 6.10). */
export const CATALOG_EVENTS = CATALOG.map((one) => ({
  ...one,
  schema: asJsonSchema(one.value),
  example: Object.fromEntries(Object.entries(Object(exampleBodyOf(one.value, "full")))),
}));

/** Without what TypeBox keeps beside the words of JSON Schema. */
function asJsonSchema(event: (typeof CATALOG)[number]["value"]): Record<string, unknown> {
  return JSON.parse(JSON.stringify(FULL_BODIES.get(event)), explained);
}

/** A field that says nothing of itself means what its name means everywhere. */
function explained(key: string, value: unknown): unknown {
  if (key !== "properties") return value;
  return Object.fromEntries(
    Object.entries(Object(value)).map(([name, field]) => {
      const meaning = FIELDS[name];
      return [name, { ...(meaning !== undefined && { description: meaning }), ...Object(field) }];
    }),
  );
}
