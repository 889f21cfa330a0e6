import { treaty } from "@elysiajs/eden";

import type { Api } from "../api.ts";
import { ApiError } from "./api-error.ts";

interface ApiClientOptions {
  /** `{server_root}`. */
  readonly serverRoot: string;
  /** The bearer token at this moment; undefined where nobody is signed in. */
  readonly token: () => string | undefined;
}

/** The API as its routes declare it: `api.partner.webhooks({ id }).test.post()`. */
export function createApiClient({ serverRoot, token }: ApiClientOptions) {
  const headers = () => {
    const bearer = token();
    return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  };
  // Instants stay the text that they are in the API.
  return treaty<Api>(serverRoot, { headers, parseDate: false }).api.v1;
}

export type ApiClient = ReturnType<typeof createApiClient>;

type Called<T> =
  | { readonly data: T; readonly error: null; readonly response: Response }
  | {
      readonly data: null;
      readonly error: { readonly value: unknown };
      readonly response: Response;
    };

/** What a call is answered with; throws an ApiError for any answer but a success. */
export async function answerOf<T>(call: Promise<Called<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (error !== null) throw new ApiError(response, error.value);
  return data;
}
