import { hasWords } from "../../ui/text-query.ts";
import type { CatalogEvent, Subscription } from "../webhooks/data/reads.ts";

/** "always" if every webhook body of the event contains the field, "sometimes" if only some bodies contain it. */
type Presence = "always" | "sometimes";

interface SchemaField {
  /** Path of the field in the webhook body, such as `review.rate`, or `words[]` for the elements of a list. */
  readonly path: string;
  readonly type: string;
  readonly presence: Presence;
  readonly meaning: string;
}

interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

/** Converts a JSON schema to rows of a table. The rows of a nested object's fields follow the row of the object. */
export function fieldsOf(schema: Schema, path = "", presence: Presence = "always"): SchemaField[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    const isThere = presence === "always" && (schema.required ?? []).includes(name);
    const field = {
      path: path === "" ? name : `${path}.${name}`,
      presence: isThere ? ("always" as const) : ("sometimes" as const),
    };
    const shown = { ...field, type: typeOf(one), meaning: one.description ?? "" };
    return [shown, ...fieldsOf(one, field.path, field.presence)];
  });
  const parts = (schema.allOf ?? []).flatMap((one) => fieldsOf(one, path, presence));
  // Marks a field as "sometimes" present if only one of several object variants (`anyOf`) defines it.
  const objects = (schema.anyOf ?? []).filter(({ properties }) => properties !== undefined);
  const forms = objects.flatMap((one) =>
    fieldsOf(one, path, objects.length > 1 ? "sometimes" : presence),
  );
  const elements = schema.items === undefined ? [] : fieldsOf(schema.items, `${path}[]`, presence);
  return [...own, ...parts, ...forms, ...elements];
}

/** Returns the fields of an event in the order of its example body. Fields that the example lacks come last. */
export function bodyFields({ value, schema, example }: BodyOf): SchemaField[] {
  const fields = inOrderOf(example, fieldsOf(schema));
  // Events about a connection share a schema, which lists all of their names.
  return fields.map((one) =>
    one.path === "event" ? { ...one, type: JSON.stringify(value) } : one,
  );
}

type BodyOf = Pick<CatalogEvent, "value" | "schema" | "example">;

/** Sorts the fields at a depth of the path by the names in `example`, each followed by the fields inside it. */
function inOrderOf(example: unknown, fields: readonly SchemaField[], depth = 0): SchemaField[] {
  const inside: object = typeof example === "object" && example !== null ? example : {};
  const values = new Map<string, unknown>(Object.entries(inside));
  const names = [...values.keys()];
  const place = (name: string) => (values.has(name) ? names.indexOf(name) : names.length);
  const byName = Map.groupBy(fields, ({ path }) => nameAt(path, depth));
  return [...byName]
    .toSorted(([a], [b]) => place(a) - place(b))
    .flatMap(([name, group]) => {
      const isOwn = ({ path }: SchemaField) => nameAt(path, depth + 1) === "";
      const nested = group.filter((one) => !isOwn(one));
      return [...group.filter(isOwn), ...inOrderOf(values.get(name), nested, depth + 1)];
    });
}

const nameAt = (path: string, depth: number) => (path.split(".")[depth] ?? "").replace("[]", "");

function typeOf(schema: Schema): string {
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.format === "date-time") return "date and time, ISO 8601";
  const { type = schema.allOf === undefined ? "any" : "object", minimum, maximum } = schema;
  if (minimum !== undefined && maximum !== undefined) return `${type}, ${minimum} to ${maximum}`;
  return type;
}

/** Returns the events whose name, description or field names contain every word of the search text. */
export function eventsLike(events: readonly CatalogEvent[], typed: string): CatalogEvent[] {
  return events.filter((one) => {
    const fields = fieldsOf(one.schema).map(({ path }) => path);
    const texts = [one.value, one.value.replaceAll("_", " "), one.description, ...fields];
    return hasWords(texts.join(" "), typed);
  });
}

/** Describes whether the subscription receives this event when it happens. A test is sent in any case. */
export function reachOf(
  event: Pick<CatalogEvent, "value" | "in_batch" | "subscribable">,
  subscription: Pick<Subscription, "delivery_kind" | "events">,
): string {
  if (!event.subscribable) return "Sent only when you ask for it here.";
  const { delivery_kind: kind, events } = subscription;
  if (kind === "batch")
    return event.in_batch
      ? "When it happens, this subscription gets it in its next batch. A test is sent at once."
      : "This subscription does not get it, because it is not part of batches. A test is sent anyway.";
  const isSubscribed = events === null || events.includes(event.value);
  return isSubscribed
    ? "When it happens, it is sent to this subscription immediately."
    : "This subscription does not get it, because its event filter excludes it. A test is sent anyway.";
}
