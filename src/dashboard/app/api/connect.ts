import { createApiClient, type ApiClient } from "../../../api/client.ts";

/**
 * Base URL of the API: the origin that served this page, followed by the API's path. The documentation calls it
 * `{base_url}`.
 */
export const BASE_URL = `${location.origin}/api/v1`;

/**
 * Creates an API client that sends the token as Bearer token with each request. Without a token, requests are
 * anonymous.
 */
export function apiWith(token: string | undefined, onUnauthorized = () => {}): ApiClient {
  return createApiClient({ serverRoot: location.origin, token: () => token, onUnauthorized });
}
