import type { Static, TObject, TSchema } from "@sinclair/typebox";

import type { CheckedByHandler } from "../http/rules.ts";
import type { Declared } from "../http/route.ts";

/*
 * The API for our own pages. Every type comes from the declarations of the routes: nothing here says what an operation
 * takes or answers, and a page that asks for what no route has does not compile.
 */

interface Types {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly query: unknown;
  readonly answers: Readonly<Record<number, TSchema | null>>;
}

/** What the routes declare: `OperationsOf<ReturnType<typeof webhookRoutes>[number]>`. */
export type OperationsOf<R> = R extends Declared<infer T> ? (T extends Types ? T : never) : never;

type ParamNames<P> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** A body is what a caller has to send; without one declared it is nothing. */
type Sent<B> =
  B extends CheckedByHandler<infer T>
    ? Static<T>
    : TSchema extends B
      ? undefined
      : B extends TSchema
        ? Static<B>
        : undefined;

type Params<P> = [ParamNames<P>] extends [never]
  ? { readonly params?: undefined }
  : { readonly params: Readonly<Record<ParamNames<P>, string>> };
type Body<B> =
  Sent<B> extends undefined ? { readonly body?: undefined } : { readonly body: Sent<B> };
/** Where none is declared the type is that of any object. */
type Query<Q> = Q extends TObject
  ? { readonly query?: { readonly [K in keyof Static<Q>]?: Static<Q>[K] } }
  : { readonly query?: undefined };

type Request<O extends Types> = Params<O["path"]> & Body<O["body"]> & Query<O["query"]>;
type Answered<A> = {
  [K in keyof A]: A[K] extends TSchema ? Static<A[K]> : undefined;
}[keyof A];

/** A declaration may stand for several: its method and path are then unions. */
type Find<O, M, P> = O extends Types
  ? M extends O["method"]
    ? P extends O["path"]
      ? O
      : never
    : never
  : never;
type PathsOf<O, M> = O extends Types ? (M extends O["method"] ? O["path"] : never) : never;

/** An answer that is no success. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Of a 422: field → what is wrong with it. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
  /** Seconds, of `Retry-After`; undefined where the answer has none. */
  readonly retryAfterS: number | undefined;
  constructor(response: Response, body: Readonly<Record<string, unknown>>) {
    const { status } = response;
    const retryAfter = response.headers.get("Retry-After");
    super(typeof body["message"] === "string" ? body["message"] : `The API answered ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = typeof body["code"] === "string" ? body["code"] : "unknown";
    this.requestId = typeof body["request_id"] === "string" ? body["request_id"] : "";
    this.errors = { ...Object(body["errors"]) };
    this.retryAfterS = retryAfter === null ? undefined : Number(retryAfter);
  }
}

export interface Client<O extends Types> {
  /** Calls one operation; throws an ApiError for any answer but a success. */
  call<const M extends O["method"], const P extends PathsOf<O, M>>(
    method: M,
    path: P,
    request: Request<Find<O, M, P>>,
  ): Promise<Answered<Find<O, M, P>["answers"]>>;
}

export interface ClientOptions {
  /** `{base_url}`. */
  readonly baseUrl: string;
  /** The bearer token at this moment; nothing where nobody is signed in. */
  readonly token: () => string | undefined;
}

interface AnyRequest {
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
}

export function createClient<O extends Types>({ baseUrl, token }: ClientOptions): Client<O> {
  const call = async (method: string, path: string, request: AnyRequest): Promise<unknown> => {
    const bearer = token();
    const { body } = request;
    const response = await fetch(baseUrl + fill(path, request), {
      method,
      headers: {
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer: unknown = text === "" ? undefined : JSON.parse(text);
    if (!response.ok) throw new ApiError(response, { ...Object(answer) });
    return answer;
  };
  // The declarations say what an operation answers; the server is held to them by its own tests.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { call } as Client<O>;
}

function fill(path: string, { params = {}, query = {} }: AnyRequest): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search.toString()}`;
}
