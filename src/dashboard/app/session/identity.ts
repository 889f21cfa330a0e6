import { apiErrorOf } from "../api/api-error.ts";
import { answerOf, type ApiClient } from "../api/api-client.ts";
import { apiWith } from "../api/connect.ts";
import { tabStorage } from "./tab-storage.ts";

type Identity = Awaited<ReturnType<typeof readIdentity>>;

/** Who is signed in, with the look of their company. */
export interface Session extends Identity {
  readonly token: string;
}

export function readIdentity(api: ApiClient) {
  return answerOf(api["verify-token"].get());
}

/** Ends the token at the server; answers whether it is certain that it has ended. */
export async function endToken(token: string): Promise<boolean> {
  try {
    await answerOf(apiWith(token).logout.get());
    return true;
  } catch (error) {
    return apiErrorOf(error)?.status === 401;
  }
}

/** With remember-me the token outlives a reload of this tab, and nothing more: never localStorage. */
const KEY = "reviewrelay.session";

export const storedSession = {
  read(): Session | undefined {
    try {
      const stored: unknown = JSON.parse(tabStorage.read(KEY) ?? "null");
      const { token, user }: Partial<Session> = Object(stored);
      // `write` has stored it; the first call with it ends the session if the token is dead.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return token === undefined || user === undefined ? undefined : (stored as Session);
    } catch {
      return undefined;
    }
  },
  write: (session: Session) => tabStorage.write(KEY, session),
  remove: () => tabStorage.remove(KEY),
  exists: () => tabStorage.read(KEY) !== null,
};
