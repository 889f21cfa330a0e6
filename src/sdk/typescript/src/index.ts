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
  advance,
  placeOf,
  type NumberRange,
  type Place,
  type SequenceState,
  type Step,
} from "./sequence.ts";
export {
  SignatureError,
  verify,
  verifyMinimal,
  type HeaderSource,
  type VerifySettings,
} from "./verify.ts";
