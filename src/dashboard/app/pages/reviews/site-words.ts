interface ErrorText {
  readonly reason: string;
  /** Step that the account's user should take next. */
  readonly advice: string;
}

/**
 * Maps the error code of a review site connection to its reason and to advice. A test checks that codes and
 * reasons equal those of the API.
 */
export const ERROR_TEXTS: Readonly<Record<string, ErrorText>> = {
  "E-001": {
    reason: "No URL is configured for this review site.",
    advice:
      "Send the address of the store's page on this site to the person who set up the connection.",
  },
  "E-002": {
    reason: "The sign-in details for this review site have expired; please sign in again.",
    advice: "Sign in to the site again where the connection was set up.",
  },
  "E-003": {
    reason: "The review site did not accept the sign-in details; please enter them again.",
    advice:
      "Check the password on the site itself, then enter it again where the connection was set up.",
  },
  "E-004": {
    reason: "The business was not found at the configured URL.",
    advice:
      "Open the store's page on the site: if it moved, send its new address to the person who set up the connection.",
  },
  "E-005": {
    reason: "The connected user may not manage this business on the review site.",
    advice: "On the site, make the connected user a manager of the business.",
  },
  "E-006": {
    reason: "The account on the review site is locked or suspended.",
    advice: "Ask the site's support to unlock the account.",
  },
  "E-007": {
    reason: "The review site asks for two-factor authentication; please confirm the sign-in.",
    advice: "Confirm the sign-in in the app or message of the site.",
  },
  "E-008": {
    reason: "Collecting data from this review site is paused.",
    advice: "Nothing to do: reviews are collected again after the pause.",
  },
  "E-009": {
    reason: "The review site cannot be reached at the moment.",
    advice: "Nothing to do: we try again automatically.",
  },
  "E-010": {
    reason: "The review site limits how often it may be asked; the connection will be tried again.",
    advice: "Nothing to do: we try again automatically.",
  },
  "E-011": {
    reason: "The review site has changed and our connection is being adapted.",
    advice: "Nothing to do: we are adapting the connection.",
  },
  "E-012": {
    reason: "The review site rejected the response because of its content rules.",
    advice: "Change the response: remove links, phone numbers, names and strong language.",
  },
  "E-013": {
    reason: "The response is too long for the review site.",
    advice: "Shorten the response.",
  },
  "E-014": {
    reason: "The review site does not take responses to this review.",
    advice: "Nothing to do: this review cannot be answered.",
  },
  "E-015": {
    reason: "The review no longer exists on the review site.",
    advice: "Nothing to do: the review was removed from the site.",
  },
};

/**
 * Returns reason and advice for an error code. A code that this version of the dashboard does not know gets a
 * general text.
 */
export function errorText(code: string | null): ErrorText {
  return (
    ERROR_TEXTS[code ?? ""] ?? {
      reason: "The review site reported a problem.",
      advice: "Send the code to the person who set up the connection.",
    }
  );
}

interface Axis {
  readonly connected: boolean;
}
interface Connection {
  readonly store_id: number;
  readonly store_name: string;
  readonly name: string;
  readonly pull: Axis;
  readonly post: Axis;
}

export interface StoreGroup<C> {
  readonly id: number;
  readonly name: string;
  readonly broken: number;
  readonly connections: readonly C[];
}

export const isBroken = ({ pull, post }: Pick<Connection, "pull" | "post">): boolean =>
  !pull.connected || !post.connected;

/** Groups connections by store. Stores with a broken connection come first, then the other stores by name. */
export function byStore<C extends Connection>(connections: readonly C[]): StoreGroup<C>[] {
  const groups = Map.groupBy(connections, (one) => one.store_id);
  return [...groups]
    .map(([id, own]) => ({
      id,
      name: own[0]?.store_name ?? "",
      broken: own.filter(isBroken).length,
      connections: own.toSorted(
        (a, b) => Number(isBroken(b)) - Number(isBroken(a)) || a.name.localeCompare(b.name),
      ),
    }))
    .toSorted(
      (a, b) => Number(b.broken > 0) - Number(a.broken > 0) || a.name.localeCompare(b.name),
    );
}
