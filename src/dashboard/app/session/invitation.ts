import { HOME } from "./trip.ts";

/** What the link of an invitation carries; the email only tells the password manager whose password it is. */
export interface Invitation {
  readonly code: string;
  readonly email: string;
}

const PATH = `${HOME}/welcome`;

function readInvitation(path: string, fragment: string): Invitation | undefined {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const code = given.get("invitation") ?? "";
  if (path !== PATH || code === "") return undefined;
  return { code, email: given.get("email") ?? "" };
}

/** Takes the code out of the address before anything else happens: it must not be kept, copied or sent anywhere. */
export function takeInvitation(): Invitation | undefined {
  const invitation = readInvitation(location.pathname, location.hash);
  if (invitation !== undefined) history.replaceState(null, "", HOME);
  return invitation;
}
