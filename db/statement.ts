import { sql, type GetColumnData, type SQL } from "drizzle-orm";
import { PgColumn, PgDialect } from "drizzle-orm/pg-core";

/*
 * Statements in raw SQL: those for which a measurement shows that the query builder is too slow, and those that must be
 * a single statement. Each is declared once, with its parameters and columns, and a comment gives the measurement or
 * the reason.
 *
 * The types follow from the schema, and tests/integration/db/statements.test.ts compares every declaration with a
 * server. The text is built when the module is loaded. The driver prepares a statement by its name on each connection.
 */

/** The type of a parameter or a result column: that of a column of the schema, or a `Value`. */
export type Shape = PgColumn | Value<unknown>;

/**
 * Type of a query parameter or result column that cannot be derived from a column of the schema, such as an array or a
 * computed value.
 */
export interface Value<T> {
  /** Never set at run time; this property only carries the TypeScript type of the value. */
  readonly data?: T;
  /** The server's name of the type, without precision and collation, which do not belong to values. */
  readonly type: string;
  readonly isNullable: boolean;
  /** The table column from which a value comes; absent if there is none. */
  readonly column?: PgColumn;
  /** The permitted texts, if the value has only a few of them. */
  readonly values?: readonly string[];
  /** The fields of the rows that a parameter or a result column contains. */
  readonly fields?: Shapes;
}

interface TypesOfServer {
  bigint: number;
  boolean: boolean;
  "double precision": number;
  integer: number;
  smallint: number;
  text: string;
  "timestamp with time zone": Date;
  "integer[]": readonly number[];
  "smallint[]": readonly number[];
  "text[]": readonly string[];
}

/** Declares a value that does not come from a column of the schema, such as a count or a limit. It is never null. */
export function value<N extends keyof TypesOfServer>(type: N): Value<TypesOfServer[N]> {
  return { type, isNullable: false };
}

/** Declares a text with few permitted values. The statement and the check constraints of the tables guarantee them. */
export function oneOf<const T extends string>(values: readonly T[]): Value<T> {
  return { type: "text", isNullable: false, values };
}

const INSTANT = "timestamp with time zone";
export const instant = value(INSTANT);

/** Declares a value that may be null although its column may not, for example in an outer join. */
export function nullable<S extends Shape>(shape: S): Value<DataOf<S> | null> {
  return { ...valueOf(shape), isNullable: true };
}

/** Declares a parameter that is an array of the column's values. */
export function list<C extends PgColumn>(column: C): Value<readonly NonNullable<DataOf<C>>[]> {
  return { type: `${valueOf(column).type}[]`, isNullable: false };
}

/** Declares a parameter that is a table. It is sent as JSON text, and a function in the statement expands it. */
export function rows<F extends Readonly<Record<string, Shape>>>(
  fields: F,
): Value<readonly ValuesOf<F>[]> {
  return { type: "text", isNullable: false, fields };
}

/** Declares a result column that is a table. The server returns JSON, which is parsed according to the fields. */
export function table<F extends Shapes>(fields: F): Value<readonly ValuesOf<F>[]> {
  return { type: "json", isNullable: false, fields };
}

/** Selects columns of the schema as the fields of a `table` column, under their names in TypeScript. */
export function selected(columns: Readonly<Record<string, PgColumn>>): SQL {
  const each = Object.entries(columns).map(
    ([name, column]) => sql`${column} as ${sql.identifier(name)}`,
  );
  return sql.join(each, sql`, `);
}

/** Aggregates the rows of a query into one JSON value. */
export function asTable(query: SQL): SQL {
  return sql`(select coalesce(json_agg(r), '[]') from (${query}) r)`;
}

export type DataOf<S> = FrozenArray<
  S extends Value<infer T> ? T : S extends PgColumn ? GetColumnData<S> : never
>;
type FrozenArray<T> = T extends readonly (infer One)[] ? readonly One[] : T;

export type Shapes = Readonly<Record<string, Shape>>;
/** The TypeScript types of a statement's parameters, or of one row of its result. */
export type ValuesOf<S extends Shapes> = { readonly [K in keyof S]: DataOf<S[K]> };
/**
 * The rows of a result. `count` is the number of rows that the statement wrote, or that it returned if it wrote none.
 */
export type Rows<C extends Shapes> = ValuesOf<C>[] & { readonly count: number };

interface Declaration<P extends Shapes, C extends Shapes> {
  /** A name that is unique among all statements. */
  readonly name: string;
  /** The parameters of the statement; absent if it has none. */
  readonly params?: P;
  /** The result columns by their names in the text; absent if the statement returns none. */
  readonly columns?: C;
  readonly text: (params: Placeholders<P>) => SQL;
}

export interface Statement<P extends Shapes = Shapes, C extends Shapes = Shapes> {
  readonly name: string;
  readonly params: P;
  readonly columns: C;
  readonly text: string;
  /** The values of $1, $2, …: Drizzle placeholders with the names of the parameters, and constants. */
  readonly binds: unknown[];
  /** The fields of table columns that are instants; JSON contains them as text. */
  readonly instants: ReturnType<typeof instantsOf>;
}

/** The statements of all loaded modules, for the test that compares them with a server. */
export const declaredStatements: Statement[] = [];

const dialect = new PgDialect();

type Nothing = Readonly<Record<string, never>>;

/** Declares a statement of the product. */
export function statement<P extends Shapes = Nothing, C extends Shapes = Nothing>(
  declaration: Declaration<P, C>,
): Statement<P, C> {
  // A declaration without parameters or columns gets empty objects, so the cast is safe.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { name, params, columns } = { params: {}, columns: {}, ...declaration } as Required<
    typeof declaration
  >;
  const query = dialect.sqlToQuery(declaration.text(placeholders(params)));
  const instants = instantsOf(columns);
  const made = { name, params, columns, text: query.sql, binds: query.params, instants };
  declaredStatements.push(made);
  return made;
}

function instantsOf(columns: Shapes) {
  return Object.entries(columns).flatMap(([column, shape]) => {
    const fields = Object.entries(valueOf(shape).fields ?? {});
    const instants = fields.filter(([, one]) => valueOf(one).type === INSTANT);
    return instants.map(([field]) => ({ column, field }));
  });
}

type Placeholders<P extends Shapes> = { readonly [K in keyof P]: SQL };

/** Creates a placeholder for each parameter. */
function placeholders<P extends Shapes>(params: P): Placeholders<P> {
  // TypeScript's type of `Object.fromEntries` loses the keys, which are those of `params`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(
    Object.entries(params).map(([name, shape]) => [name, placeholder(name, shape)]),
  ) as Placeholders<P>;
}

function placeholder(name: string, shape: Shape): SQL {
  const { fields } = valueOf(shape);
  if (fields === undefined) return sql`${sql.placeholder(name)}`;
  const json = sql.param(sql.placeholder(name), { mapToDriverValue: JSON.stringify });
  const columns = Object.entries(fields).map(([field, one]) => {
    const type = one instanceof PgColumn ? one.getSQLType() : one.type;
    return sql`${sql.identifier(field)} ${sql.raw(type)}`;
  });
  return sql`json_to_recordset(${json}::text::json) as ${sql.identifier(name)}(${sql.join(columns, sql`, `)})`;
}

/** Describes a column of the schema in the form of a value. */
export function valueOf(shape: Shape): Omit<Value<unknown>, "data"> {
  if (!(shape instanceof PgColumn)) return shape;
  const type = shape.getSQLType().replaceAll(/ \(\d+\)| collate "C"/g, "");
  return { type, column: shape, isNullable: !shape.notNull };
}

/**
 * Asserts that a nullable column is not null in these rows. A check constraint or a condition of the statement
 * guarantees it.
 */
export function neverNull<T>(held: T | null): T {
  if (held === null)
    throw new Error("A value is null that a check or condition declares as never null.");
  return held;
}

/** Returns the only row of a result, for example of an insert. Throws if there is no row or more than one. */
export function onlyRow<T>(found: readonly T[]): T {
  const [row] = found;
  if (row === undefined || found.length > 1)
    throw new Error(`The statement returned ${found.length} rows instead of one.`);
  return row;
}
