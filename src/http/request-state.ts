import type { TObject, TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { FieldErrors } from "../lib/problem.ts";
import type { RequestBody } from "./body.ts";
import type { RequestContext } from "./request-context.ts";
import type { Caller, Principal } from "./principal.ts";
import type { Meter } from "./rate-limit.ts";
import { type FieldRules, toFieldErrors } from "./rules.ts";

/** The schemas by which the body and the query of a route are read. */
export interface Schemas {
  readonly body: TSchema | undefined;
  readonly query: TObject | undefined;
}

/** The state of a request from its first byte to its response. */
export interface RequestState {
  readonly requestContext: RequestContext;
  readonly meter: Meter;
  readonly startedMs: number;
  /** The body as it was sent, for signatures over its bytes; empty until it is read. */
  rawBody: RequestBody;
  /** The user of the token; undefined until the token is verified, and on public routes. */
  principal: Principal | undefined;
  /** The schemas of the matched route; undefined until its checks begin. */
  schemas: Schemas | undefined;
  /** The parsed body and query; the validation may still reject them. */
  body: unknown;
  query: Readonly<Record<string, unknown>>;
  rules: FieldRules | undefined;
  /** Objects that the path identifies, by the name of the macro that loaded them. */
  readonly found: Record<string, unknown>;
}

/** The context of hooks. `requestStates` sets this field before any other hook runs. */
export interface StatefulContext {
  requestState: RequestState;
}

/** Declares the request state in the context of all hooks of an Elysia instance. */
export const declaresRequestState = () =>
  // `requestStates` replaces this value for each request, so no hook reads the empty object.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  new Elysia({ name: "request-state" }).decorate("requestState", {} as RequestState);

/** Returns the signed-in caller of a request whose token `access` has checked. */
export function signedIn({ requestContext, principal }: RequestState): Pick<Caller, keyof Caller> {
  if (principal === undefined) throw new Error("The token of this request was not checked.");
  return { requestContext, principal };
}

/**
 * Creates an Elysia macro that loads the object which the path identifies, if the caller may access it, and passes it
 * to the handler under `name`. The macro throws `not_found` or `forbidden`; these take precedence over field errors.
 */
export function loads<const N extends string, T>(
  name: N,
  find: (input: LoaderInput) => Promise<T>,
): Record<N, LoaderMacro<N, T>> {
  const macro: LoaderMacro<N, T> = {
    async transform({ requestState, params }) {
      requestState.found[name] = await find({ ...signedIn(requestState), params });
    },
    resolve({ requestState }) {
      // The cast is safe, because the transform above has set this property.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return { [name]: requestState.found[name] } as Record<N, T>;
    },
  };
  // The cast is needed, because TypeScript types a computed key as string.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { [name]: macro } as Record<N, LoaderMacro<N, T>>;
}

interface LoaderInput extends Caller {
  readonly params: Readonly<Record<string, string>>;
}

interface LoaderMacro<N extends string, T> {
  transform(
    context: StatefulContext & { readonly params: Readonly<Record<string, string>> },
  ): Promise<void>;
  resolve(context: StatefulContext): Record<N, T>;
}

/** Runs the field rules of a route and returns their errors. Returns no errors for a route without rules. */
export async function runRules(
  rules: FieldRules | undefined,
  { found, principal, requestContext }: RequestState,
  { body, query }: { readonly body: unknown; readonly query: unknown },
): Promise<FieldErrors> {
  if (rules === undefined) return {};
  // The cast is needed: the schemas of a route determine the input type of its rules, which the type of this function
  // cannot express.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const input = { ...found, principal, requestContext, body, query } as never;
  return toFieldErrors(await rules(input));
}
