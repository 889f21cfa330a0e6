import type { CatalogEvent } from "../webhooks/data/reads.ts";
import { fieldsOf } from "./schema-fields.ts";

/** The events that have each word that was typed: in the name, the description, or in the name of a field. */
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
