import { BASE_URL } from "../api/connect.ts";
import { newChallenge, readArrival, type Arrival } from "./single-sign-on.ts";
import { tabStorage } from "./tab-storage.ts";

export const HOME = "/dashboard";
const KEY = "reviewrelay.sso";

/** An arrival counts for the first sign-in after it, and not for one that follows a session. */
export const NO_ARRIVAL: Arrival = { kind: "none" };

/**
 * Prepares a trip to the identity provider, with a challenge whose verifier stays in this tab. Answers the address to
 * go to; undefined where the browser stores nothing, or hashes nothing because the page is not secure.
 */
export async function startTrip({ email, remember }: { email: string; remember: boolean }) {
  try {
    const { verifier, challenge } = await newChallenge();
    const path = location.pathname + location.search;
    if (!tabStorage.write(KEY, { verifier, email, remember, path })) return undefined;
    const query = new URLSearchParams({
      email,
      code_challenge: challenge,
      code_challenge_method: "S256",
    });
    return `${BASE_URL}/auth/sso/redirect?${query.toString()}`;
  } catch {
    return undefined;
  }
}

/** Takes the code out of the address before anything else happens: it must not be kept, copied or sent anywhere. */
export function takeArrival(): Arrival {
  const arrival = readArrival(location.search, tabStorage.read(KEY));
  if (arrival.kind === "none") return arrival;
  tabStorage.remove(KEY);
  const path = "trip" in arrival ? arrival.trip?.path : undefined;
  history.replaceState(null, "", path ?? HOME);
  return arrival;
}
