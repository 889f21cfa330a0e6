/** For what knows the API by its types alone, and has unit tests without a page around it. */
export type { ApiClient } from "../../../client/api.ts";
