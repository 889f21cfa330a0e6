import { isRecord } from "../lib/fields.ts";

/** The columns of `review_history` that may name a person. */
export interface Personal {
  readonly actor: unknown;
  readonly review: unknown;
  readonly metadata: unknown;
}

/** The name that replaces the name of an erased user. */
export const ERASED_NAME = "Erased";

/** The domain of the emails of erased users, which no other user gets. No mail can reach it (RFC 6761, 6.4). */
const ERASED_DOMAIN = "erased.invalid";
export const isOfErasedDomain = (email: string): boolean => email.endsWith(`@${ERASED_DOMAIN}`);

/** Returns the email that replaces the email of an erased user. */
export const erasedEmail = (userId: number): string => `erased-${userId}@${ERASED_DOMAIN}`;

/**
 * Returns whether a user was erased. An erased user never changes again, because nobody can tell whose user it was.
 */
export const isErased = ({ id, email }: { readonly id: number; readonly email: string }): boolean =>
  email === erasedEmail(id);

/** Matches the end of a text after which, or the beginning before which, an address would go on. */
const GOES_ON = { before: /[\p{L}\p{N}._%+-]$/u, after: /^(?:[\p{L}\p{N}-]|\.[\p{L}\p{N}])/u };

/** Returns whether a text contains the address as a whole: `joann@x.example` does not name `ann@x.example`. */
export function namesAddress(text: string, address: string): boolean {
  const parts = text.split(address);
  return parts
    .slice(1)
    .some((rest, i) => !GOES_ON.before.test(parts[i] ?? "") && !GOES_ON.after.test(rest));
}

/**
 * The fields in the metadata of events (contract 8.2) that contain texts of the reviewer or about the review, each with
 * the value that replaces it in an erasure.
 */
const TEXTS: Readonly<Record<string, unknown>> = { content: "", body: "", reason: "", words: [] };

/**
 * Returns an event without its reviewer. The reviewer becomes null, and the texts in the metadata become empty. All
 * other values stay.
 */
export function withoutReviewer({ actor, review, metadata }: Personal): Personal {
  return {
    actor,
    review: isRecord(review) ? { ...review, reviewer: null } : review,
    metadata: isRecord(metadata)
      ? Object.fromEntries(
          Object.entries(metadata).map(([key, value]) => [key, key in TEXTS ? TEXTS[key] : value]),
        )
      : metadata,
  };
}

/** Returns an event without the name of the user who acted. */
export function withoutActor({ actor, ...event }: Personal): Personal {
  return { ...event, actor: isRecord(actor) ? { ...actor, name: ERASED_NAME } : actor };
}

export function isChanged(before: Personal, after: Personal): boolean {
  return JSON.stringify(before) !== JSON.stringify(after);
}
