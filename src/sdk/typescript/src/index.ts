export type * from "./api.ts";
export { ReviewRelay, type Settings } from "./client.ts";
export { ApiError } from "./errors.ts";
export { oauthToken, type OAuthSettings, type OAuthTokens } from "./oauth.ts";
export type {
  Answer,
  JsonOperation,
  ListOperation,
  Operation,
  Options,
  RowOf,
} from "./operations.ts";
export { type PageOf, Pages } from "./pages.ts";
export {
  SignatureError,
  verify,
  verifyMinimal,
  type HeaderSource,
  type VerifySettings,
} from "./verify.ts";
