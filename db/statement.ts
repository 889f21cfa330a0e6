import { is, Placeholder, sql, type GetColumnData, type SQL } from "drizzle-orm";
import { type PgColumn, PgDialect } from "drizzle-orm/pg-core";
import type postgres from "postgres";

/*
 * Statements that are written as SQL: those that the query builder cannot say, and those that are measured hot. Each is
 * declared once, with its parameters and the columns of its rows, and a comment says why it is not left to the query
 * builder. The types of both follow from the schema, and tests/integration/db/statements.test.ts holds every declaration against a server. The text is put together when the
 * module is loaded. Running one is a call of the driver, which prepares it by name on each connection.
 */

/** The type of a parameter or of a column of the answer: that of a column of the schema, or a value's own. */
export type Shape = PgColumn | Value<unknown>;

/** A type that no column of the schema has as it is. */
export class Value<T> {
  /** Never set: it carries the type. */
  declare readonly data: T;
  /** As the server names it. */
  readonly type: string;
  readonly options: ValueOptions;

  constructor(type: string, options: ValueOptions) {
    this.type = type;
    this.options = options;
  }
}

interface ValueOptions {
  readonly isNullable: boolean;
  /** The table column that a value comes from, if any. */
  readonly column?: PgColumn;
  /** All that a text may be. */
  readonly values?: readonly string[];
  /** The fields of the rows that a parameter or a column holds. */
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

/** What no column of the schema has as it is: a number that is counted, a limit. Never null. */
export function value<N extends keyof TypesOfServer>(type: N): Value<TypesOfServer[N]> {
  return new Value(type, { isNullable: false });
}

/** A text that is one of a few, as the statement and the checks of the tables have it. */
export function oneOf<const T extends string>(values: readonly T[]): Value<T> {
  return new Value("text", { isNullable: false, values });
}

const INSTANT = "timestamp with time zone";
export const instant = value(INSTANT);

/** Null although its column never is: of the far side of an outer join, or by a condition. */
export function nullable<S extends Shape>(shape: S): Value<DataOf<S> | null> {
  return new Value(typeOf(shape), { ...optionsOf(shape), isNullable: true });
}

/** A parameter that is an array of such values. */
export function list<C extends PgColumn>(column: C): Value<readonly NonNullable<DataOf<C>>[]> {
  return new Value(`${typeOf(column)}[]`, { isNullable: false });
}

/** A parameter that is a table: as a parameter it is JSON text, in the statement a call that takes it apart. */
export function rows<F extends Readonly<Record<string, Shape>>>(
  fields: F,
): Value<readonly ValuesOf<F>[]> {
  return new Value("text", { isNullable: false, fields });
}

/** A column of an answer that is a table: JSON, which is taken apart as the fields say. */
export function table<F extends Shapes>(fields: F): Value<readonly ValuesOf<F>[]> {
  return new Value("json", { isNullable: false, fields });
}

/** What selects columns of the schema as the fields of such a table: under the names that they have in code. */
export function selected(columns: Readonly<Record<string, PgColumn>>): SQL {
  const each = Object.entries(columns).map(
    ([name, column]) => sql`${column} as ${sql.identifier(name)}`,
  );
  return sql.join(each, sql`, `);
}

/** The rows of a query as one value. */
export function asTable(query: SQL): SQL {
  return sql`(select coalesce(json_agg(r), '[]') from (${query}) r)`;
}

export type DataOf<S> = Frozen<
  S extends Value<infer T> ? T : S extends PgColumn ? GetColumnData<S> : never
>;
type Frozen<T> = T extends readonly (infer One)[] ? readonly One[] : T;

export type Shapes = Readonly<Record<string, Shape>>;
/** What is given for the parameters, or read of the columns. */
export type ValuesOf<S extends Shapes> = { readonly [K in keyof S]: DataOf<S[K]> };
/** The rows of an answer; `count` is of those that the statement wrote, or else read. */
export type Rows<C extends Shapes> = ValuesOf<C>[] & { readonly count: number };

interface Declaration<P extends Shapes, C extends Shapes> {
  /** Unique among all. */
  readonly name: string;
  /** None if absent. */
  readonly params?: P;
  /** Of the answer, by the names that the text gives them; none if absent. */
  readonly columns?: C;
  readonly text: (params: Placeholders<P>) => SQL;
}

export interface Statement<P extends Shapes = Shapes, C extends Shapes = Shapes> {
  readonly name: string;
  readonly params: P;
  readonly columns: C;
  readonly text: string;
  /** What stands for $1, $2, …: the name of a parameter, or a constant of the code. */
  readonly binds: readonly Bind[];
  /** Of the columns that are tables: their fields that are instants, which JSON has as texts. */
  readonly tables: readonly Table[];
}

interface Table {
  readonly column: string;
  readonly instants: readonly string[];
}

export type Bind =
  | { readonly kind: "param"; readonly name: string; readonly isJson: boolean }
  | { readonly kind: "constant"; readonly value: unknown };

const declared: Statement[] = [];

/** Those of all modules that are loaded, for the test. */
export function declaredStatements(): readonly Statement[] {
  return declared;
}

const dialect = new PgDialect();

type Nothing = Readonly<Record<string, never>>;

export function statement<P extends Shapes = Nothing, C extends Shapes = Nothing>(
  declaration: Declaration<P, C>,
): Statement<P, C> {
  // Where one is absent its type is that of nothing.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { name, params, columns } = { params: {}, columns: {}, ...declaration } as Required<
    typeof declaration
  >;
  const compiled = dialect.sqlToQuery(declaration.text(placeholders(params)));
  const binds = compiled.params.map((param) => bindOf(params, param));
  const tables = tablesOf(columns);
  const made = { name, params, columns, text: compiled.sql, binds, tables };
  declared.push(made);
  return made;
}

function tablesOf(columns: Shapes): Table[] {
  return Object.entries(columns).flatMap(([column, shape]) => {
    const fields = Object.entries(optionsOf(shape).fields ?? {});
    const instants = fields.filter(([, one]) => typeOf(one) === INSTANT).map(([field]) => field);
    return instants.length === 0 ? [] : [{ column, instants }];
  });
}

export type Placeholders<P extends Shapes> = { readonly [K in keyof P]: SQL };

/** Object.fromEntries forgets the names; they are those of `params`. */
export function placeholders<P extends Shapes>(params: P): Placeholders<P> {
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

type Driver = Pick<postgres.ISql<{ bigint: number }>, "unsafe">;
type Given = Parameters<Driver["unsafe"]>[1];

/** What a statement is sent by: the driver's pool or transaction, or what stands before one. */
export interface StatementClient {
  unsafe<T extends object[]>(
    text: string,
    values: Given,
    options: typeof PREPARED,
  ): Promise<T & { readonly count: number }>;
}

/** Without parameters the driver would not prepare it. */
const PREPARED = { prepare: true, simple: false };

/** Runs a statement on a connection; code that holds a `Db` or `Tx` calls its `run`. */
export function runStatement<P extends Shapes, C extends Shapes>(
  client: StatementClient,
  { text, binds, tables }: Statement<P, C>,
  given: ValuesOf<P>,
): Promise<Rows<C>> {
  const answer = client.unsafe<ValuesOf<C>[]>(text, bindAll(binds, given), PREPARED);
  // The driver sends it once it is asked for the answer: at once, so that statements go out in the order of their calls.
  return answer.then((found) => withInstants(found, tables));
}

function withInstants<A extends readonly object[]>(found: A, tables: readonly Table[]): A {
  for (const row of found)
    for (const one of tables) readInstants(Reflect.get(row, one.column), one);
  return found;
}

function readInstants(held: Record<string, unknown>[], { instants }: Table): void {
  for (const row of held)
    for (const name of instants) {
      const text = row[name];
      if (typeof text === "string") row[name] = new Date(text);
    }
}

function bindAll(binds: readonly Bind[], given: Readonly<Record<string, unknown>>): Given {
  const values = binds.map((bind) => {
    if (bind.kind === "constant") return bind.value;
    return bind.isJson ? JSON.stringify(given[bind.name]) : given[bind.name];
  });
  // The types of the parameters say what a caller may give; the driver takes any of them.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return values as Given;
}

export function optionsOf(shape: Shape): ValueOptions {
  if (shape instanceof Value) return shape.options;
  return { column: shape, isNullable: !shape.notNull };
}

/** As the server names it: without precision and collation, which no value carries. */
export function typeOf(shape: Shape): string {
  return sqlTypeOf(shape)
    .replace(/ \(\d+\)/, "")
    .replace(' collate "C"', "");
}

function sqlTypeOf(shape: Shape): string {
  return shape instanceof Value ? shape.type : shape.getSQLType();
}

/** For a column that may be null, but not in these rows: a check of the table, or a condition of the statement, says so. */
export function neverNull<T>(held: T | null): T {
  if (held === null) throw new Error("A value that the schema rules out to be null is null.");
  return held;
}

/** The row of a statement that answers one, such as the insert of one. */
export function onlyRow<T>(found: readonly T[]): T {
  const [row] = found;
  if (row === undefined || found.length > 1)
    throw new Error(`The statement answered ${found.length} rows.`);
  return row;
}
