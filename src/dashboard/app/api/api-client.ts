/** The typed client stands alone, so that code that needs it has unit tests without a page around it. */
export { answerOf, type ApiClient } from "../../../api/client.ts";
