import type { CatalogEvent, Subscription } from "../webhooks/data/reads.ts";

/** Whether every body has the field, or only some bodies. */
type Presence = "always" | "sometimes";

interface SchemaField {
  /** The path of the field, such as `review.rate`. Elements of a list are `words[]`. */
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

/** Flattens a JSON schema to the rows of a table; the fields of an object follow the object. */
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
  // A field of one variant of an object may be absent in the others.
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
  if (schema.format === "date-time") return "instant, ISO 8601";
  const { type = schema.allOf === undefined ? "any" : "object", minimum, maximum } = schema;
  if (minimum !== undefined && maximum !== undefined) return `${type}, ${minimum} to ${maximum}`;
  return type;
}

/** Finds the events that contain each typed word in their name, description or field names. */
export function eventsLike(events: readonly CatalogEvent[], typed: string): CatalogEvent[] {
  const words = typed.toLowerCase().split(/\s+/);
  return events.filter((one) => {
    const fields = fieldsOf(one.schema).map(({ path }) => path);
    const text = [one.value, one.value.replaceAll("_", " "), one.description, ...fields]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Returns whether a subscription receives the event when it occurs. */
export function reachOf(
  event: Pick<CatalogEvent, "value" | "in_batch" | "subscribable">,
  subscription: Pick<Subscription, "delivery_kind" | "events">,
): string {
  if (!event.subscribable) return "It is sent on request alone.";
  const { delivery_kind: kind, events } = subscription;
  if (kind === "batch")
    return event.in_batch
      ? "When it happens, this subscription gets it with the next batch."
      : "When it happens, this subscription does not get it: batches leave it out.";
  const isSubscribed = events === null || events.includes(event.value);
  return isSubscribed
    ? "When it happens, this subscription gets it at once."
    : "When it happens, this subscription does not get it: its filter leaves it out.";
}
