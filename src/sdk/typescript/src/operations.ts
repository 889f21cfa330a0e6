import type { paths } from "./api.ts";
import type { PageOf } from "./pages.ts";

type Method = "get" | "put" | "post" | "patch" | "delete";

/** The methods of a path. openapi-typescript writes the other methods as `get?: never`. */
type MethodOf<Path> = {
  [M in keyof Path & Method]: Path[M] extends { responses: object } ? M : never;
}[keyof Path & Method];

/** An operation: its method and its path below `/api/v1` in the reference, such as `GET /partner/webhooks/{id}`. */
export type Operation = {
  [Path in keyof paths]: Path extends `/api/v1${infer Rest}`
    ? `${Uppercase<MethodOf<paths[Path]>>} ${Rest}`
    : never;
}[keyof paths];

/** The operations whose response is JSON or has no body: all but streams, exports and redirects. */
export type JsonOperation = {
  [O in Operation]: [Answer<O>] extends [never] ? never : O;
}[Operation];

/** The operations that return one page of a list. */
export type ListOperation = {
  [O in JsonOperation]: Answer<O> extends PageOf<unknown> ? O : never;
}[JsonOperation];

type Described<O extends Operation> = O extends `${infer M} ${infer Rest}`
  ? paths[`/api/v1${Rest}` & keyof paths][Lowercase<M> & Method]
  : never;

/** The body of a successful response; null if it has none. */
export type Answer<O extends Operation> =
  Described<O> extends { responses: infer All }
    ? JsonOf<All[keyof All & (200 | 201 | 202 | 204)]>
    : never;

/** A row of the list that an operation returns. */
export type RowOf<O extends Operation> = Answer<O> extends PageOf<infer Row> ? Row : never;

type JsonOf<Part> = Part extends { content: { "application/json": infer Json } }
  ? Json
  : Part extends { content?: never }
    ? null
    : never;

/** The options of an operation. The API describes which parts an operation has, and which of them it needs. */
export type Options<O extends Operation> = O extends Operation
  ? Common &
      BodyOf<Described<O>> &
      (Described<O> extends { parameters: infer P } ? ParametersOf<P> & KeyOf<P> : never)
  : never;

interface Common {
  readonly signal?: AbortSignal;
}

type BodyOf<One> = {
  readonly [K in keyof One as K extends "requestBody" ? "body" : never]: JsonOf<
    NonNullable<One[K]>
  >;
};

type ParametersOf<P> = {
  readonly [K in keyof P as Extract<K, "path" | "query">]: K extends "path" ? IdsOf<P[K]> : P[K];
};

type IdsOf<Path> = Path extends object ? { readonly [Name in keyof Path]: string | number } : Path;

/** A POST that answers 201 takes an `Idempotency-Key`, the only header that the API describes as a parameter. */
type KeyOf<P> = P extends { header?: never }
  ? { readonly idempotencyKey?: never }
  : { readonly idempotencyKey?: string };

/** The arguments of a call: the options may be left out if the operation needs none of them. */
export type Arguments<All> = Partial<All> extends All ? [options?: All] : [options: All];
