import { treaty } from "@elysiajs/eden/treaty2";

import type { Api } from "../api/routes.ts";
import { ApiError } from "./api-error.ts";

interface ApiClientOptions {
  /** `{server_root}`. */
  readonly serverRoot: string;
  /** The bearer token at this moment; undefined where nobody is signed in. */
  readonly token: () => string | undefined;
  /** Is told of every 401. */
  readonly onUnauthorized?: () => void;
}

/**
 * The API as its routes declare it: `api.partner.webhooks({ id }).test.post()`. Path parameters go into the path as they
 * are: what may be more than an id is encoded by the caller.
 */
export function createApiClient({ serverRoot, token, onUnauthorized }: ApiClientOptions) {
  const headers = () => {
    const bearer = token();
    return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  };
  // What this returns would take the place of the answer.
  const onResponse = ({ status }: Response) => {
    if (status === 401) onUnauthorized?.();
  };
  // Instants stay the text that they are in the API.
  return treaty<Api>(serverRoot, { headers, onRequest, onResponse, parseDate: false }).api.v1;
}

/** Treaty says of a query that it is a body of JSON, which no GET has. */
function onRequest(_path: string, { method, headers }: RequestInit): void {
  if (method === "GET") Reflect.deleteProperty(Object(headers), "content-type");
}

export type ApiClient = ReturnType<typeof createApiClient>;

/** The server could not be asked where there is no response. */
type Called<T> =
  | { readonly data: T; readonly error: null; readonly response: Response | undefined }
  | {
      readonly data: null;
      readonly error: { readonly value: unknown };
      readonly response: Response | undefined;
    };

/** What a call is answered with; throws an ApiError for any answer but a success, and what fetch throws where none came. */
export async function answerOf<T>(call: Promise<Called<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (error === null) return data;
  throw response === undefined ? error.value : new ApiError(response, error.value);
}
