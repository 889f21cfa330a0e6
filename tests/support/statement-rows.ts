import { optionsOf, typeOf, type Shape, type Statement } from "../../db/statement.ts";

/**
 * Throws if a row is not what its statement declares. Tests look at every row so: a server can describe the types of an
 * answer, but not whether the far side of a join may be null.
 */
export function checkRows({ name, columns }: Statement, rows: readonly unknown[]): void {
  for (const row of rows)
    for (const [column, shape] of Object.entries(columns)) {
      const value: unknown = Reflect.get(Object(row), column);
      if (!fits(value, shape))
        throw new Error(
          `${name} answers ${column} as ${String(value)}, which is no ${typeOf(shape)}.`,
        );
    }
}

function fits(value: unknown, shape: Shape): boolean {
  const { isNullable } = optionsOf(shape);
  if (value === null) return isNullable;
  const type = typeOf(shape);
  if (type.endsWith("[]")) return Array.isArray(value);
  if (type === "timestamp with time zone") return value instanceof Date;
  if (type === "boolean") return typeof value === "boolean";
  if (type === "text" || type === "uuid") return typeof value === "string" && isOneOf(value, shape);
  return type === "json" || type === "jsonb" || typeof value === "number";
}

function isOneOf(value: string, shape: Shape): boolean {
  const { column, values = column?.enumValues } = optionsOf(shape);
  return values === undefined || values.includes(value);
}
