export { ReviewRelay, type Settings } from "./client.ts";
export { ApiError } from "./errors.ts";
export type * from "./generated.ts";
export { oauthToken, type OAuthSettings, type OAuthTokens } from "./oauth.ts";
export { Pages, type RequestOptions } from "./requests.ts";
export {
  SignatureError,
  verify,
  verifyMinimal,
  type HeaderSource,
  type VerifySettings,
} from "./verify.ts";
