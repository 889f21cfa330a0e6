import type { Json, JsonObject } from "./schemas.ts";

/**
 * The document with answers, parameters and request bodies that are referred to once in the places of their references: a component is
 * worth its bytes where it is shared. Schemas stay, since generators name their types after them.
 */
export function inPlace(document: JsonObject): JsonObject {
  const counts = new Map<string, number>();
  for (const [, ref = ""] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g))
    counts.set(ref, (counts.get(ref) ?? 0) + 1);
  const components = Object(document["components"]);
  const alone = new Map<Json, Json>();
  for (const kind of ["responses", "parameters", "requestBodies"])
    for (const [name, one] of Object.entries<Json>(components[kind])) {
      const ref = `#/components/${kind}/${name}`;
      if (counts.get(ref) !== 1) continue;
      alone.set(ref, one);
      Reflect.deleteProperty(components[kind], name);
    }
  const placed = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(placed);
    return alone.get(value["$ref"] ?? null) ?? objectOf(value, placed);
  };
  return objectOf(document, placed);
}

function objectOf(value: JsonObject, change: (one: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, change(one)]));
}
