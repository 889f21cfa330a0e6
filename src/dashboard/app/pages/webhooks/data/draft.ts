import type { DeliveryKind, Subscription } from "./reads.ts";

/**
 * Values of the forms that create or change a subscription, before they are sent. The fields have the same names as
 * in the API.
 */
export interface Draft extends Pick<
  Subscription,
  | "delivery_kind"
  | "webhook_url"
  | "label"
  | "payload_mode"
  | "suppress_native_notifications"
  | "ordering"
  | "standard_webhooks"
  | "sequence_headers"
> {
  /** Names of the selected events; null for all events, including those added in the future. */
  readonly events: readonly string[] | null;
  readonly batch_interval_hours: number;
  /** Headers that replace the saved ones; undefined to keep them, because no response contains their values. */
  readonly headers: readonly OwnHeader[] | undefined;
}

/** A header that the partner adds to all deliveries of a subscription. */
export interface OwnHeader {
  readonly name: string;
  readonly value: string;
}

const DEFAULT_INTERVAL_HOURS = 4;

export function newDraft(kind: DeliveryKind): Draft {
  return {
    delivery_kind: kind,
    webhook_url: "",
    label: "",
    events: null,
    payload_mode: "full",
    suppress_native_notifications: false,
    ordering: "subscription",
    standard_webhooks: false,
    sequence_headers: false,
    batch_interval_hours: DEFAULT_INTERVAL_HOURS,
    headers: undefined,
  };
}

export const draftOf = (one: Subscription): Draft => ({
  ...one,
  batch_interval_hours: one.batch_interval_hours ?? DEFAULT_INTERVAL_HOURS,
  headers: undefined,
});

/** Returns the settings that apply to the draft's kind of subscription, as fields of a request. */
function fieldsOf(draft: Draft) {
  const { events, payload_mode, suppress_native_notifications, ordering, headers } = draft;
  const common = {
    label: draft.label.trim(),
    webhook_url: draft.webhook_url.trim(),
    standard_webhooks: draft.standard_webhooks,
    ...(headers !== undefined && { headers: headersOf(headers) }),
  };
  if (draft.delivery_kind === "batch")
    return { ...common, batch_interval_hours: draft.batch_interval_hours };
  const ofEvents = { events, payload_mode, suppress_native_notifications, ordering };
  return { ...common, ...ofEvents, sequence_headers: draft.sequence_headers };
}

/** Returns headers as the field of a request: null for none. A row that is empty is left out. */
function headersOf(rows: readonly OwnHeader[]): Readonly<Record<string, string>> | null {
  const filled = rows.filter(({ name, value }) => name.trim() !== "" || value !== "");
  if (filled.length === 0) return null;
  return Object.fromEntries(filled.map(({ name, value }) => [name.trim(), value.trim()]));
}

/**
 * Returns whether each header has a name of its own and a value. The API cannot tell two headers of the same name,
 * because a request contains them as an object.
 */
export function areComplete(rows: readonly OwnHeader[] = []): boolean {
  return rows.every(
    ({ name, value }, i) =>
      (name.trim() === "") === (value.trim() === "") && duplicateOf(rows, i) === undefined,
  );
}

/** Returns the error of a header whose name an earlier one has, too; case does not count. */
export function duplicateOf(rows: readonly OwnHeader[], index: number): string | undefined {
  const nameAt = (i: number) => (rows[i]?.name ?? "").trim().toLowerCase();
  const isTwice =
    nameAt(index) !== "" && rows.slice(0, index).some((_, i) => nameAt(i) === nameAt(index));
  return isTwice ? "This name is already used above." : undefined;
}

/** Returns what the user must still enter about an endpoint, as a request; undefined if nothing is missing. */
export function missingIn(
  draft: Pick<Draft, "webhook_url" | "label" | "headers">,
): string | undefined {
  const url = draft.webhook_url.trim();
  if (url === "") return "Enter an https address.";
  if (urlHint(url)?.kind === "error") return "Correct the URL.";
  if (draft.label.trim() === "") return "Enter a label.";
  return areComplete(draft.headers) ? undefined : INCOMPLETE_HEADERS;
}

export const INCOMPLETE_HEADERS = "Give each header a name and a value.";

export const hasMoved = (draft: Draft, current: Subscription): boolean =>
  draft.webhook_url.trim() !== current.webhook_url;

/**
 * Returns the headers that the form of another URL shows. The API requires the headers of the subscription again, so
 * that nobody has values sent elsewhere that they cannot read (contract 6.22).
 */
export function movedHeaders(draft: Draft, current: Subscription): readonly OwnHeader[] {
  return draft.headers ?? withoutValues(current.header_names);
}

/** Returns a row for each name of a header, in which the user enters the value again. */
export const withoutValues = (names: readonly string[]): readonly OwnHeader[] =>
  names.map((name) => ({ name, value: "" }));

export function createBody(draft: Draft) {
  return { delivery_kind: draft.delivery_kind, ...fieldsOf(draft) };
}

/**
 * Returns the settings in the draft that differ from the saved subscription, because an update sends only
 * changed settings.
 */
export function changesOf(
  draft: Draft,
  current: Subscription,
): Partial<ReturnType<typeof fieldsOf>> {
  const before: Readonly<Record<string, unknown>> = fieldsOf(draftOf(current));
  const changed = Object.entries(fieldsOf(draft)).filter(
    ([field, value]) => !isSame(value, before[field]),
  );
  return Object.fromEntries(changed);
}

/** Compares two values of a setting. The order of a list is ignored, because an event filter has no order. */
function isSame(one: unknown, other: unknown): boolean {
  return normalValue(one) === normalValue(other);
}

function normalValue(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? value.map(String).toSorted() : value);
}

interface UrlHint {
  /** `error`: the URL is certainly invalid. `advice`: the URL may be valid after all, so the form can be sent. */
  readonly kind: "error" | "advice";
  readonly text: string;
}

const MAX_URL_CHARS = 2_048;
const INTERNAL_HOST =
  /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[|0\.0\.0\.0)|\.(local|internal|localhost)$/;

/** Checks a webhook URL in the browser while the user types. The API makes the final decision. */
export function urlHint(text: string): UrlHint | undefined {
  if (text === "") return undefined;
  if (text.length > MAX_URL_CHARS)
    return errorHint(`Use at most ${MAX_URL_CHARS.toLocaleString()} characters.`);
  if (/\s/.test(text)) return errorHint("Remove the spaces from the URL.");
  const url = /^https?:\/\/[^/?#]/i.test(text) ? URL.parse(text) : null;
  if (url === null)
    return errorHint("Enter the whole address, such as https://example.com/webhooks.");
  if (url.username !== "" || url.password !== "")
    return errorHint(
      "Remove the user name and password. Verify the signature to check that a request comes from us.",
    );
  if (text.includes("#"))
    return errorHint("Remove the part after #: it is never sent to a server.");
  if (INTERNAL_HOST.test(url.hostname))
    return adviceHint(
      "This address is not public. Use a public address; only a development server allows this one.",
    );
  if (url.protocol === "http:")
    return adviceHint("Use https; only a development server allows http.");
  return undefined;
}

/** Derives the default label of a subscription from the host name of its URL. */
export function labelFor(text: string): string {
  return URL.parse(text)?.hostname.slice(0, 100) ?? "";
}

const errorHint = (text: string): UrlHint => ({ kind: "error", text });
const adviceHint = (text: string): UrlHint => ({ kind: "advice", text });
