import { is, Placeholder, sql, type GetColumnData, type SQL } from "drizzle-orm";
import { PgColumn, PgDialect } from "drizzle-orm/pg-core";
import type postgres from "postgres";

/*
 * Statements written whole: those that are measured hot, and those that must be one statement. Each is declared once,
 * with its parameters and columns, and a comment gives its figure or reason.
 *
 * The types follow from the schema, and tests/integration/db/statements.test.ts compares every declaration with a
 * server. The text is built when the module is loaded. The driver prepares a statement by name on each connection.
 */

/** The type of a parameter or a result column: that of a column of the schema, or a `Value`. */
export type Shape = PgColumn | Value<unknown>;

/**
 * Type of a query parameter or result column that cannot be derived from a column of the schema, such as an array or a
 * computed value.
 */
export interface Value<T> extends ValueOptions {
  /** Never set at run time; this property only carries the TypeScript type of the value. */
  readonly data?: T;
  /** The name of the type on the server. */
  readonly type: string;
}

interface ValueOptions {
  readonly isNullable: boolean;
  /** The table column that a value comes from, if any. */
  readonly column?: PgColumn;
  /** The permitted texts, if the value has only a few. */
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

/** Declares a value that comes from no column of the schema, such as a count or a limit. It is never null. */
export function value<N extends keyof TypesOfServer>(type: N): Value<TypesOfServer[N]> {
  return { type, isNullable: false };
}

/** Declares a text with few permitted values, as the statement and the checks of the tables guarantee them. */
export function oneOf<const T extends string>(values: readonly T[]): Value<T> {
  return { type: "text", isNullable: false, values };
}

const INSTANT = "timestamp with time zone";
export const instant = value(INSTANT);

/** Declares a value that may be null although its column is not, as on the far side of an outer join. */
export function nullable<S extends Shape>(shape: S): Value<DataOf<S> | null> {
  return { ...optionsOf(shape), type: typeOf(shape), isNullable: true };
}

/** Declares a parameter that is an array of the column's values. */
export function list<C extends PgColumn>(column: C): Value<readonly NonNullable<DataOf<C>>[]> {
  return { type: `${typeOf(column)}[]`, isNullable: false };
}

/** Declares a parameter that is a table. It is sent as JSON text, which a function call in the statement expands. */
export function rows<F extends Readonly<Record<string, Shape>>>(
  fields: F,
): Value<readonly ValuesOf<F>[]> {
  return { type: "text", isNullable: false, fields };
}

/** Declares a result column that is a table. The server returns JSON, which is parsed according to the fields. */
export function table<F extends Shapes>(fields: F): Value<readonly ValuesOf<F>[]> {
  return { type: "json", isNullable: false, fields };
}

/** Selects columns of the schema as the fields of a `table` column, under their names in code. */
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

export type DataOf<S> = Frozen<
  S extends Value<infer T> ? T : S extends PgColumn ? GetColumnData<S> : never
>;
type Frozen<T> = T extends readonly (infer One)[] ? readonly One[] : T;

export type Shapes = Readonly<Record<string, Shape>>;
/** The TypeScript types of a statement's parameters, or of one row of its result. */
export type ValuesOf<S extends Shapes> = { readonly [K in keyof S]: DataOf<S[K]> };
/** The rows of a result; `count` is the number of rows that the statement wrote, or else returned. */
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
  /** The sources of $1, $2, …: a parameter by name, or a constant. */
  readonly binds: readonly Bind[];
  /** The fields of table columns that are instants, which JSON contains as texts. */
  readonly instants: ReturnType<typeof instantsOf>;
}

export type Bind =
  | { readonly kind: "param"; readonly name: string; readonly isJson: boolean }
  | { readonly kind: "constant"; readonly value: unknown };

/** The statements of all loaded modules, for the test that compares them with a server. */
export const declaredStatements: Statement[] = [];

const dialect = new PgDialect();

type Nothing = Readonly<Record<string, never>>;

/** Declares a statement of the product. */
export function statement<P extends Shapes = Nothing, C extends Shapes = Nothing>(
  declaration: Declaration<P, C>,
): Statement<P, C> {
  const made = compiled(declaration);
  declaredStatements.push(made);
  return made;
}

/** Builds a statement that `declaredStatements` does not return. */
export function compiled<P extends Shapes = Nothing, C extends Shapes = Nothing>(
  declaration: Declaration<P, C>,
): Statement<P, C> {
  // A declaration without parameters or columns gets empty objects, which have the declared types.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { name, params, columns } = { params: {}, columns: {}, ...declaration } as Required<
    typeof declaration
  >;
  const query = dialect.sqlToQuery(declaration.text(placeholders(params)));
  const binds = query.params.map((param) => bindOf(params, param));
  return { name, params, columns, text: query.sql, binds, instants: instantsOf(columns) };
}

function instantsOf(columns: Shapes) {
  return Object.entries(columns).flatMap(([column, shape]) => {
    const fields = Object.entries(optionsOf(shape).fields ?? {});
    const instants = fields.filter(([, one]) => typeOf(one) === INSTANT);
    return instants.map(([field]) => ({ column, field }));
  });
}

type Placeholders<P extends Shapes> = { readonly [K in keyof P]: SQL };

/**
 * Makes a placeholder for each parameter. The type of Object.fromEntries loses the names, which are the keys of
 * `params`.
 */
function placeholders<P extends Shapes>(params: P): Placeholders<P> {
  // `Object.fromEntries` has no type for the keys, which are those of `params`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(
    Object.entries(params).map(([name, shape]) => [name, placeholder(name, shape)]),
  ) as Placeholders<P>;
}

function placeholder(name: string, shape: Shape): SQL {
  const { fields } = optionsOf(shape);
  if (fields === undefined) return sql`${sql.placeholder(name)}`;
  const columns = Object.entries(fields).map(
    ([field, one]) => sql`${sql.identifier(field)} ${sql.raw(sqlTypeOf(one))}`,
  );
  return sql`json_to_recordset(${sql.placeholder(name)}::text::json) as ${sql.identifier(name)}(${sql.join(columns, sql`, `)})`;
}

function bindOf(params: Shapes, param: unknown): Bind {
  if (!is(param, Placeholder)) return { kind: "constant", value: param };
  const shape = params[param.name];
  const isJson = shape !== undefined && optionsOf(shape).fields !== undefined;
  return { kind: "param", name: param.name, isJson };
}

type DriverValues = Parameters<postgres.ISql<{ bigint: number }>["unsafe"]>[1];

/** The part of the driver that sends a statement: its pool or transaction, or a wrapper around either. */
export interface StatementClient {
  unsafe<T extends object[]>(
    text: string,
    values: DriverValues,
    options: typeof PREPARED,
  ): Promise<T & { readonly count: number }>;
}

/** Forces preparation: the driver would not prepare a statement without parameters. */
const PREPARED = { prepare: true, simple: false };

/** Runs a declared statement with the values of its parameters. */
export type Run = <P extends Shapes, C extends Shapes>(
  statement: Statement<P, C>,
  values: ValuesOf<P>,
) => Promise<Rows<C>>;

/** Runs a statement on a driver connection. Code that has a `Db` or `Tx` calls its `run` instead. */
export function runStatement<P extends Shapes, C extends Shapes>(
  client: StatementClient,
  { text, binds, instants }: Statement<P, C>,
  values: ValuesOf<P>,
): Promise<Rows<C>> {
  const answer = client.unsafe<ValuesOf<C>[]>(text, bindAll(binds, values), PREPARED);
  // The driver sends a query when `then` is called. Calling it here sends statements in the order of the calls.
  return answer.then((found) => {
    for (const one of instants) for (const row of found) readInstants(row, one);
    return found;
  });
}

function readInstants(row: object, { column, field }: Statement["instants"][number]): void {
  const held: Record<string, unknown>[] = Reflect.get(row, column);
  for (const one of held) {
    const text = one[field];
    if (typeof text === "string") one[field] = new Date(text);
  }
}

function bindAll(binds: readonly Bind[], values: Readonly<Record<string, unknown>>): DriverValues {
  const bound = binds.map((bind) => {
    if (bind.kind === "constant") return bind.value;
    return bind.isJson ? JSON.stringify(values[bind.name]) : values[bind.name];
  });
  // The types of the parameters restrict the values of a caller; the driver accepts all of them.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return bound as DriverValues;
}

export function optionsOf(shape: Shape): ValueOptions {
  return shape instanceof PgColumn ? { column: shape, isNullable: !shape.notNull } : shape;
}

/** Returns the server's name of a type, without precision and collation, which values do not carry. */
export function typeOf(shape: Shape): string {
  return sqlTypeOf(shape)
    .replace(/ \(\d+\)/, "")
    .replace(' collate "C"', "");
}

function sqlTypeOf(shape: Shape): string {
  return shape instanceof PgColumn ? shape.getSQLType() : shape.type;
}

/**
 * Asserts that a nullable column is not null in these rows, as a check of the table or a condition of the statement
 * guarantees.
 */
export function neverNull<T>(held: T | null): T {
  if (held === null) throw new Error("A value that the schema rules out to be null is null.");
  return held;
}

/** Returns the only row of a result, such as that of an insert; throws if there are more or none. */
export function onlyRow<T>(found: readonly T[]): T {
  const [row] = found;
  if (row === undefined || found.length > 1)
    throw new Error(`The statement answered ${found.length} rows.`);
  return row;
}
