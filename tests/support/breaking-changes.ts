import { fieldsOf } from "../../src/lib/fields.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Lists the differences between two OpenAPI documents that break a client generated from `before`: a removed method,
 * success status or response field, a newly required request field, a removed request value, a changed type. Error
 * responses are not compared, because all have one schema. Additions break no client.
 */
export function breakingChanges(before: Json, after: Json): string[] {
  const found: string[] = [];
  for (const [path, item] of Object.entries(at(before, "paths")))
    for (const [method, operation] of Object.entries(fieldsOf(item))) {
      const label = `${method} ${path}`;
      const now = at(after, "paths", path, method);
      if (Object.keys(now).length === 0) found.push(`${label} is gone`);
      else found.push(...ofOperation(label, [before, fieldsOf(operation)], [after, now]));
    }
  return found;
}

type Sided = readonly [document: Json, part: Json];

function ofOperation(label: string, [oldDoc, old]: Sided, [newDoc, now]: Sided): string[] {
  const found: string[] = [];
  if (old["operationId"] !== now["operationId"]) found.push(`${label} has another operationId`);
  const schemaOf = (document: Json, part: unknown): Sided => {
    const [content] = Object.values(at(resolved(document, part), "content"));
    return [document, fieldsOf(fieldsOf(content)["schema"])];
  };
  for (const [status, answer] of Object.entries(at(old, "responses"))) {
    if (Number(status) >= 400) continue;
    const same = at(now, "responses")[status];
    if (same === undefined) found.push(`${label} has no ${status}`);
    else
      found.push(
        ...ofSchema(
          `${label} ${status}`,
          schemaOf(oldDoc, answer),
          schemaOf(newDoc, same),
          "answer",
        ),
      );
  }
  const [before, after] = [
    schemaOf(oldDoc, old["requestBody"]),
    schemaOf(newDoc, now["requestBody"]),
  ];
  // A client that sends no body goes on as long as none is required.
  const isNew = old["requestBody"] === undefined && at(now, "requestBody")["required"] !== true;
  return isNew ? found : [...found, ...ofSchema(`${label} body`, before, after, "request")];
}

/** Compares two schemas. It resolves `$ref` and `allOf`; the branches of `oneOf` and `anyOf` are not compared. */
function ofSchema(
  label: string,
  [oldDoc, oldPart]: Sided,
  [newDoc, newPart]: Sided,
  side: "request" | "answer",
): string[] {
  const [old, now] = [flat(oldDoc, oldPart), flat(newDoc, newPart)];
  const found: string[] = [];
  if (JSON.stringify(old["type"]) !== JSON.stringify(now["type"]))
    found.push(`${label} has another type`);
  const isNew = (value: unknown, list: unknown) => Array.isArray(list) && !list.includes(value);
  if (side === "request" && Array.isArray(old["enum"]))
    for (const value of old["enum"])
      if (isNew(value, now["enum"])) found.push(`${label} takes no ${String(value)}`);
  const [had, has] = [at(old, "properties"), at(now, "properties")];
  for (const [name, field] of Object.entries(had)) {
    if (has[name] === undefined) found.push(`${label} has no ${name}`);
    else
      found.push(
        ...ofSchema(
          `${label} ${name}`,
          [oldDoc, fieldsOf(field)],
          [newDoc, fieldsOf(has[name])],
          side,
        ),
      );
  }
  const [needed, needs] = [listOf(old["required"]), listOf(now["required"])];
  if (side === "request")
    for (const name of needs.filter((one) => !needed.includes(one)))
      found.push(`${label} needs ${name}`);
  else
    for (const name of needed.filter((one) => !needs.includes(one) && has[one] !== undefined))
      found.push(`${label} may lack ${name}`);
  if (old["items"] !== undefined)
    found.push(
      ...ofSchema(`${label}[]`, [oldDoc, at(old, "items")], [newDoc, at(now, "items")], side),
    );
  return found;
}

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

function at(value: Json, ...path: string[]): Json {
  return path.reduce<Json>((one, key) => fieldsOf(one[key]), value);
}

function resolved(document: Json, part: unknown): Json {
  const one = fieldsOf(part);
  const { $ref } = one;
  return typeof $ref === "string"
    ? resolved(document, at(document, ...$ref.slice(2).split("/")))
    : one;
}

/** Resolves the `$ref` of a schema and merges the parts of its `allOf` into one object. */
function flat(document: Json, part: Json): Json {
  const { allOf, ...own } = resolved(document, part);
  if (!Array.isArray(allOf)) return own;
  const parts = [own, ...allOf.map((one) => flat(document, fieldsOf(one)))];
  return {
    ...own,
    type: "object",
    properties: Object.assign({}, ...parts.map((one) => at(one, "properties"))),
    required: parts.flatMap((one) => listOf(one["required"])),
  };
}
