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

/** Describes in a sentence whether the subscription receives this event when it occurs. */
export function reachOf(
  event: Pick<CatalogEvent, "value" | "in_batch" | "subscribable">,
  subscription: Pick<Subscription, "delivery_kind" | "events">,
): string {
  if (!event.subscribable) return "Sent on request only.";
  const { delivery_kind: kind, events } = subscription;
  if (kind === "batch")
    return event.in_batch
      ? "Included in the next batch of this subscription."
      : "Not sent to this subscription, because it is not part of batches.";
  const isSubscribed = events === null || events.includes(event.value);
  return isSubscribed
    ? "Sent to this subscription immediately."
    : "Not sent to this subscription, because its event filter excludes it.";
}
