import type { ApiError } from "../../../api/client.ts";
import { apiErrorOf } from "../api/client.ts";

interface ErrorMessage {
  readonly title: string;
  /** Advice for the user's next step. */
  readonly advice: string;
  readonly requestId: string;
}

/** Describes an error to users in a title and advice for the next step. */
export function errorMessageOf(error: unknown): ErrorMessage {
  const answer = apiErrorOf(error);
  if (answer === undefined)
    return {
      title: "The server cannot be reached.",
      advice: "Check your connection, then try again. Nothing was changed as far as we know.",
      requestId: "",
    };
  if (answer.code === "step_up_required")
    return {
      title: "You did not confirm that it is you.",
      advice: "Nothing was changed. Try again when your passkey or authenticator app is at hand.",
      requestId: "",
    };
  return { title: answer.message, advice: adviceFor(answer), requestId: answer.requestId };
}

function adviceFor({ status, code, retryAfterS, errors }: ApiError): string {
  const fields = Object.entries(errors).map(([field, texts]) => `${field} ${texts.join(", ")}`);
  if (status === 422) return fields.length === 0 ? "Check the fields." : `${fields.join("; ")}.`;
  if (status === 401) return "Sign in again.";
  if (status === 403) return "Ask an owner of your company whether your role should allow it.";
  if (status === 404) return "It may have been deleted meanwhile.";
  if (status === 409)
    return CONFLICTS[code] ?? "Something changed meanwhile: look again, then decide.";
  if (status === 429) return `Try again in ${retryAfterS ?? "a few"} seconds.`;
  return "Try again; if it stays like this, tell us the number of the request.";
}

/**
 * Maps the error code of a 409 response to advice, for conflicts that the general text "something changed
 * meanwhile" would not explain.
 */
const CONFLICTS: Readonly<Record<string, string>> = {
  slot_occupied: "Delete the subscription of this kind first, or change it instead.",
  already_queued: "It is on its way already: wait for its next attempt.",
  subscription_disabled: "Enable the subscription first: while it is disabled nothing is sent.",
  flag_open: "A colleague flagged it meanwhile. Load the page again to see the reason.",
  no_open_flag: "A colleague closed the flag meanwhile. Load the page again to see how.",
  no_response: "A colleague deleted it meanwhile. Load the page again.",
  review_removed: "There is nowhere left to respond to it or to flag it.",
  not_invitable: "Load the page again to see the present state of the user.",
  token_exists: "Load the page again to see it.",
  limit_reached: "Delete one that is no longer used, then try again.",
  last_owner: "Make another active user an owner first.",
  last_factor: "Add another passkey or app first, then remove this one.",
  no_second_factor: "Under Security you add a passkey or an authenticator app.",
  last_super_admin: "Make somebody else a super-admin first: without one nobody could undo this.",
};
