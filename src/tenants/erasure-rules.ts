/** The columns of an event in the history that may name a person. */
export interface Personal {
  readonly actor: unknown;
  readonly review: unknown;
  readonly metadata: unknown;
}

/** The name that replaces that of an erased user. */
export const ERASED_NAME = "Erased";

/** The address that replaces that of an erased user; no mail can reach it (RFC 6761, 6.4). */
export const erasedEmail = (userId: number): string => `erased-${userId}@erased.invalid`;

/** The metadata of events (contract 8.2) with texts of the reviewer or about the review, and what replaces them. */
const TEXTS: Readonly<Record<string, unknown>> = { content: "", body: "", reason: "", words: [] };

/** Returns an event without its reviewer: name and texts are empty, and everything else stays. */
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

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
