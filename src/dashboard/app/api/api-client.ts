/** The typed client of the API. By this file alone, so that what knows the API by its types has unit tests without a page. */
export { answerOf, type ApiClient } from "../../../client/api.ts";
