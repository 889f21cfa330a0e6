import { createApiClient, type ApiClient } from "../../../api/client.ts";

/** `{base_url}` of the API that served this page. */
export const BASE_URL = `${location.origin}/api/v1`;

/** Makes a client that calls the API with the token; without one, as somebody who is not signed in. */
export function apiWith(token: string | undefined, onUnauthorized = () => {}): ApiClient {
  return createApiClient({ serverRoot: location.origin, token: () => token, onUnauthorized });
}
