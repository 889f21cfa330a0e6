import { valueOf, type Shape, type Statement } from "../../db/statement.ts";
import { fieldsOf } from "../../src/lib/fields.ts";

/**
 * Throws if a row does not match the columns that its statement declares. Tests check every row this way, because the
 * server can describe the types of a result, but not whether the outer side of a join is nullable.
 */
export function checkRows({ name, columns }: Statement, rows: readonly unknown[]): void {
  for (const row of rows)
    for (const [column, shape] of Object.entries(columns)) {
      const value = fieldsOf(row)[column];
      if (!fits(value, shape))
        throw new Error(
          `${name} answers ${column} as ${String(value)}, which is no ${valueOf(shape).type}.`,
        );
    }
}

function fits(value: unknown, shape: Shape): boolean {
  const { isNullable, type } = valueOf(shape);
  if (value === null) return isNullable;
  if (type.endsWith("[]")) return Array.isArray(value);
  if (type === "timestamp with time zone") return value instanceof Date;
  if (type === "boolean") return typeof value === "boolean";
  if (type === "text" || type === "uuid") return typeof value === "string" && isOneOf(value, shape);
  return type === "json" || type === "jsonb" || typeof value === "number";
}

function isOneOf(value: string, shape: Shape): boolean {
  const { column, values = column?.enumValues } = valueOf(shape);
  return values === undefined || values.includes(value);
}
