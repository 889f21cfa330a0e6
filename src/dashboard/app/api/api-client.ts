/** The type stands alone, so that code that needs the types of the API only has unit tests without a page around it. */
export type { ApiClient } from "../../../client/api.ts";
