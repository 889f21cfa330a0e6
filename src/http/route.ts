import type { Static, TObject, TSchema } from "@sinclair/typebox";

import type { Principal } from "../auth/model.ts";
import type { ProblemCode } from "../lib/problem.ts";
import type { Sound } from "./check.ts";
import type { Told } from "./faults.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** What is known of a request before anybody is signed in. It goes into audit rows as it is. */
export interface Call {
  readonly requestId: string;
  readonly ip: string;
  readonly userAgent: string | null;
  readonly headers: Headers;
}

/**
 * Who may use a route. `bearer` is asked after the token was verified and answers the code of the refusal, or nothing;
 * a refusal by role is audited as AUTHZ_DENIED (interface.md 5.4).
 */
export type Access =
  | { readonly kind: "public" }
  | { readonly kind: "bearer"; readonly refuse: (principal: Principal) => ProblemCode | undefined };

/** An answer that is not a plain 200 with a JSON body. */
export class Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Record<string, string>;
  constructor(status: number, body?: unknown, headers: Record<string, string> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** What a handler works with: everything checked, in the order of decisions.md 1. */
interface Input<P, B, Q, F> {
  readonly principal: P;
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Q;
  readonly body: B;
  /** The body as it came, for signatures over its bytes. */
  readonly raw: Uint8Array;
  readonly found: F;
}

type Found<P> = Pick<Input<P, unknown, unknown, unknown>, "principal" | "call" | "params">;

/** What rules judge: the fields that have their shape, while others may be malformed or missing. */
type Judged<P, B, Q, F> = Omit<Input<P, Sound<B>, Sound<Q>, F>, "raw">;

interface Spec<A extends Access, B extends TSchema, Q extends TObject, F> {
  readonly method: Method;
  /** Below `{base_url}`, such as `/partner/webhooks/:id`. */
  readonly path: string;
  readonly summary: string;
  /** What the summary does not say, for the reader of the API's description (CommonMark). */
  readonly description?: string;
  readonly access: A;
  /** Not counted by the rate limits (decisions.md 1). */
  readonly unlimited?: boolean;
  /** Of a success; `application/json` if absent. */
  readonly contentType?: "text/event-stream";
  /** The JSON body. With `bodyOptional` an absent body counts as `{}`. */
  readonly body?: B;
  readonly bodyOptional?: boolean;
  /** In bytes; 64 KiB if absent. */
  readonly bodyLimit?: number;
  /** Reads the raw bytes before anything is parsed: a signature is checked here. */
  readonly verify?: (input: {
    call: Call;
    params: Readonly<Record<string, string>>;
    raw: Uint8Array;
  }) => Promise<void>;
  readonly query?: Q;
  /** Looks up the record that the path names, scoped to the caller: 404 and 403 come before 422. */
  readonly find?: (input: Found<PrincipalOf<A>>) => Promise<F>;
  /**
   * Says what no schema can, of every field at once: its words and the schema's make one 422. A rule over two fields
   * is silent unless both are sound. It may look things up and writes nothing; what may change until the handler's
   * transaction is decided there once more.
   */
  readonly rules?: (input: Judged<PrincipalOf<A>, Static<B>, Static<Q>, F>) => Told | Promise<Told>;
  /** Status → schema of the body (`null`: no body), for the API's description. */
  readonly answers: Answers;
  readonly problems?: readonly ProblemCode[];
  readonly handle: (input: Input<PrincipalOf<A>, Static<B>, Static<Q>, F>) => Promise<unknown>;
}

type PrincipalOf<A extends Access> = A extends { kind: "bearer" } ? Principal : undefined;

/** A route with its types erased: what `src/app.ts` mounts and the API's description is made from. */
export interface Route extends Omit<
  Spec<Access, TSchema, TObject, unknown>,
  "find" | "rules" | "handle"
> {
  readonly find?: (input: Found<Principal | undefined>) => Promise<unknown>;
  readonly rules?: (
    input: Judged<Principal | undefined, unknown, unknown, unknown>,
  ) => Told | Promise<Told>;
  readonly handle: (
    input: Input<Principal | undefined, unknown, unknown, unknown>,
  ) => Promise<unknown>;
}

/** Status → schema of the body; null: no body. */
type Answers = Readonly<Record<number, TSchema | null>>;

/** What a declaration says of its own types, for the typed client; there is no such property at run time. */
export interface Declared<T> {
  readonly types?: T;
}

/**
 * Declares one route. The checks run in one fixed order (413, 401, 403, 415, 400, 404, 422, then the handler's own
 * 409), which Elysia's hooks cannot give: they validate before they authorise.
 */
export function route<
  const M extends Method,
  const P extends string,
  const A extends Access,
  const R extends Answers,
  B extends TSchema,
  Q extends TObject,
  F,
>(
  spec: Spec<A, B, Q, F> & { readonly method: M; readonly path: P; readonly answers: R },
): Route & Declared<{ method: M; path: P; body: B; query: Q; answers: R }> {
  // The types are erased here and nowhere else: `serve` hands back what this same declaration produced.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return spec as unknown as Route;
}
