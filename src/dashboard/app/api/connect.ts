import { createApiClient, type ApiClient } from "../../../api/client.ts";

/**
 * Base URL of the API: the origin that served this page, followed by the API's path. The documentation calls it
 * `{base_url}`.
 */
export const BASE_URL = `${location.origin}/api/v1`;

interface ConnectOptions {
  /** Called for every response with status 401. */
  readonly onUnauthorized?: () => void;
  /**
   * Asks the user to prove a second factor for the request to this address. Resolves to false if the user gives no
   * proof.
   */
  readonly askForProof?: (address: string) => Promise<boolean>;
}

/**
 * Creates an API client that sends the token as Bearer token with each request. Without a token, requests are
 * anonymous.
 */
export function apiWith(token: string | undefined, options: ConnectOptions = {}): ApiClient {
  const { onUnauthorized = () => {}, askForProof } = options;
  return createApiClient({
    serverRoot: location.origin,
    token: () => token,
    onUnauthorized,
    ...(askForProof && { fetcher: repeating(askForProof) }),
  });
}

/**
 * Returns a `fetch` for requests for which the API may demand a second factor (contract 4.27). It repeats such a
 * request after the user has proved the factor. Without a proof, the caller gets the API's refusal.
 */
function repeating(askForProof: (address: string) => Promise<boolean>) {
  return async (...request: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...request);
    if (!(await isStepUp(response))) return response;
    const [target] = request;
    const address = target instanceof Request ? target.url : String(target);
    return (await askForProof(address)) ? fetch(...request) : response;
  };
}

async function isStepUp(response: Response): Promise<boolean> {
  if (response.status !== 403) return false;
  // Reads a copy of the response, because a body can be read only once, and the caller reads it, too.
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => undefined);
  const hasCode = typeof body === "object" && body !== null && "code" in body;
  return hasCode && body.code === "step_up_required";
}
