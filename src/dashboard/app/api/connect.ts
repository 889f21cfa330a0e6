import { createApiClient, type ApiClient } from "../../../api/client.ts";

/** The API's `{base_url}`: the origin that served this page, with the path of the API. */
export const BASE_URL = `${location.origin}/api/v1`;

/** Creates a client that sends the token with each request; without a token the requests are anonymous. */
export function apiWith(token: string | undefined, onUnauthorized = () => {}): ApiClient {
  return createApiClient({ serverRoot: location.origin, token: () => token, onUnauthorized });
}
