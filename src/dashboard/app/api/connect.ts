import { createApiClient, type ApiClient } from "../../../client/api.ts";
import { apiErrorOf } from "./api-error.ts";

/** `{base_url}` of the API that served this page. */
export const BASE_URL = `${location.origin}/api/v1`;

/** Makes a client that calls the API with the token; without one, as somebody who is not signed in. */
export function apiWith(token: string | undefined, onUnauthorized = () => {}): ApiClient {
  const client = createApiClient({ baseUrl: BASE_URL, token: () => token });
  const call = async (...request: Parameters<ApiClient["call"]>) => {
    try {
      return await client.call(...request);
    } catch (error) {
      if (apiErrorOf(error)?.status === 401) onUnauthorized();
      throw error;
    }
  };
  // It has the operations of the client, and reports a 401 as well.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { call } as ApiClient;
}
