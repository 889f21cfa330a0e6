import { createApiClient, type ApiClient } from "../../../client/api.ts";
import { apiErrorOf } from "./api-error.ts";

/** `{base_url}` of the API that served this page. */
export const BASE_URL = `${location.origin}/api/v1`;

/** The API as whoever holds the token; without one, as somebody who is not signed in. */
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
  // The operations are the client's own; a 401 is reported as well.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { call } as ApiClient;
}
