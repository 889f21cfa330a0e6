import type { ApiError } from "../../../api/client.ts";
import { apiErrorOf } from "../api/client.ts";
import { duration } from "./format.ts";

interface ErrorMessage {
  readonly title: string;
  /** Advice for the user's next step. */
  readonly advice: string;
  readonly requestId: string;
}

/**
 * Describes an error to users in a title and advice for the next step. `isRead` is true if a page could not be read,
 * which repeats the request once the server answers.
 */
export function errorMessageOf(error: unknown, isRead = false): ErrorMessage {
  const answer = apiErrorOf(error);
  if (answer === undefined)
    return {
      title: "The server cannot be reached.",
      advice: isRead
        ? "Check your network connection. This page loads as soon as the server answers."
        : "Check your network connection and try again. Your change was probably not saved.",
      requestId: "",
    };
  if (answer.code === "step_up_required")
    return {
      title: "You did not confirm your identity.",
      advice: "Nothing was changed. Try again with your passkey or authenticator app.",
      requestId: "",
    };
  return { title: answer.message, advice: adviceFor(answer), requestId: answer.requestId };
}

function adviceFor({ status, code, retryAfterS, errors }: ApiError): string {
  const fields = Object.entries(errors).map(([field, texts]) => `${field} ${texts.join(", ")}`);
  if (status === 422) return fields.length === 0 ? "Check the fields." : `${fields.join("; ")}.`;
  if (status === 401) return "Sign in again.";
  if (status === 403)
    return "Your role does not allow this. Ask an owner of your company for access.";
  if (status === 404) return "It may have been deleted. Go back to the list and reload it.";
  if (status === 409)
    return CONFLICTS[code] ?? "The data has changed. Reload the page and try again.";
  if (status === 429)
    return `Try again in ${retryAfterS === undefined ? "a few seconds" : duration(retryAfterS)}.`;
  return "Try again. If the problem persists, contact support with the request ID.";
}

/**
 * Maps the error code of a 409 response to advice, for conflicts that the general text "The data has changed" would
 * not explain.
 */
const CONFLICTS: Readonly<Record<string, string>> = {
  slot_occupied: "Change the existing subscription of this kind, or delete it first.",
  already_queued: "Wait for its next attempt.",
  subscription_disabled: "Enable the subscription first. A disabled subscription sends nothing.",
  flag_open: "A colleague flagged the review. Reload the page to see the reason.",
  no_open_flag: "A colleague closed the flag. Reload the page to see its status.",
  no_response: "A colleague deleted the response. Reload the page.",
  review_removed: "You cannot respond to a removed review or flag it.",
  no_password: "Reload the page to see the current state of the user.",
  not_invitable: "Reload the page to see the current state of the user.",
  token_exists: "Reload the page to see the token.",
  limit_reached: "Delete one that is no longer used, then try again.",
  last_owner: "Make another active user an owner first.",
  last_factor: "Add another passkey or app first, then remove this one.",
  no_second_factor: "Add a passkey or an authenticator app under Security.",
  in_use: "Delete or change those records first.",
  company_active: "A company can be deleted only while it is inactive.",
  deletion_requested: "Operators cancel it under Erasures.",
  deletion_running: "It continues until everything is deleted.",
  user_erased: "An erased user never changes again. Create a new user instead.",
  own_user: "Nobody can erase their own user.",
  last_super_admin: "Make another user a super-admin first. The platform needs at least one.",
};
