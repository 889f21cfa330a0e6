import { sentence } from "../../ui/format.ts";
import { errorText } from "./site-words.ts";

export interface HistoryEntry {
  readonly id: number;
  readonly event: string;
  readonly actor?: unknown;
  readonly metadata?: unknown;
  readonly occurred_at: string;
}

/** Text of one entry in a review's history. */
interface Description {
  readonly who: string;
  /** Phrase that follows the actor's name, such as `flagged the review` after `Kim Owner`. */
  readonly what: string;
  /** Text that a user wrote, such as a reason, a note or a response. */
  readonly quote?: string;
  /** Consequence of the action, such as a mail that was sent. */
  readonly more?: string;
}

interface NameLookup {
  readonly user: (id: number) => string;
  /** Returns the display name for a provider's slug. */
  readonly source: (slug: string) => string;
}

type Fields = Readonly<Record<string, unknown>>;
type Describe = (metadata: Fields, names: NameLookup) => Omit<Description, "who">;

export function describeEntry(entry: HistoryEntry, names: NameLookup): Description {
  const actor = fieldsOf(entry.actor);
  const name = textOf(actor["name"]) ?? "Somebody";
  const who = actor["type"] === "system" ? names.source(name) : name;
  const describe = isDescribed(entry.event) ? DESCRIPTIONS[entry.event] : undefined;
  const metadata = fieldsOf(entry.metadata);
  return { who, ...(describe?.(metadata, names) ?? { what: sentence(entry.event).toLowerCase() }) };
}

function fieldsOf(value: unknown): Fields {
  return { ...(typeof value === "object" && value) };
}

/** Returns whether the pages have words and an icon for an event. */
export function isDescribed(event: string): event is keyof typeof DESCRIPTIONS {
  return Object.hasOwn(DESCRIPTIONS, event);
}

export const DESCRIPTIONS = {
  review_received: () => ({ what: "published the review" }),
  review_updated: ({ changed, restored }) => ({
    what:
      restored === true
        ? "restored the removed review"
        : `published a change to ${wordsFor(changed, FIELD_NAMES) || "the review"}`,
  }),
  review_removed: () => ({ what: "removed the review" }),
  profanity_detected: ({ words }) => ({
    what: "published a text with strong language",
    quote: wordsFor(words),
  }),
  review_flagged: ({ reason }) => ({ what: "flagged the review", ...quoteOf(reason) }),
  flag_status_changed: ({ to, native_email: mail }) => ({
    what: `set the flag to “${sentence(textOf(to) ?? "")}”`,
    ...(mail === "queued" && { more: "The account owner is notified by email." }),
  }),
  review_assigned: ({ user_id: id }, names) => ({
    what: `assigned the review to ${names.user(Number(id))}`,
  }),
  note_added: ({ body }) => ({ what: "added a note", ...quoteOf(body) }),
  response_submitted: ({ body }) => ({ what: "responded", ...quoteOf(body) }),
  response_updated: ({ body }) => ({ what: "changed the response", ...quoteOf(body) }),
  response_deleted: () => ({ what: "deleted the response" }),
  response_post_succeeded: () => ({ what: "published the response" }),
  response_post_failed: ({ error_code: code }) => {
    const { reason, advice } = errorText(textOf(code) ?? null);
    return { what: "rejected the response", more: `${reason} ${advice} (${String(code)})` };
  },
  homeowner_notified_of_response: ({ native_email: mail }) => ({
    what: "confirmed the response",
    more: textOf(mail) === undefined ? "" : (MAIL_NOTICES[String(mail)] ?? ""),
  }),
} satisfies Record<string, Describe>;

/** State of a response at the review site. */
type Posting =
  | { readonly state: "waiting" | "published" }
  | { readonly state: "rejected"; readonly reason: string };

/** Returns whether the review site has published the present response, by the last entry about it. */
export function postingOf(history: readonly HistoryEntry[]): Posting {
  const last = history.findLast(({ event }) => event.startsWith("response_"));
  if (last?.event === "response_post_failed") {
    const { reason, advice } = errorText(textOf(fieldsOf(last.metadata)["error_code"]) ?? null);
    return { state: "rejected", reason: `${reason} ${advice}` };
  }
  const isSent = last?.event === "response_submitted" || last?.event === "response_updated";
  return { state: isSent ? "waiting" : "published" };
}

const FIELD_NAMES: Readonly<Record<string, string>> = {
  rate: "the rating",
  reviewer: "the reviewer",
  content: "the text",
  reviewed_at: "the date",
};

const MAIL_NOTICES: Readonly<Record<string, string>> = {
  queued: "The reviewer is notified by email.",
  suppressed: "Your agency notifies the reviewer itself.",
  no_address: "The reviewer was not notified because no email address is known.",
};

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
const quoteOf = (value: unknown) => (typeof value === "string" ? { quote: value } : {});

const LIST_FORMAT = new Intl.ListFormat(undefined, { type: "conjunction" });
function wordsFor(values: unknown, known: Readonly<Record<string, string>> = {}): string {
  if (!Array.isArray(values)) return "";
  return LIST_FORMAT.format(values.map((one) => known[String(one)] ?? String(one)));
}
