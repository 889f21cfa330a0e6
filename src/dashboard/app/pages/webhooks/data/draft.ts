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
> {
  /** Names of the selected events; null for all events, including those added in the future. */
  readonly events: readonly string[] | null;
  readonly batch_interval_hours: number;
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
    batch_interval_hours: DEFAULT_INTERVAL_HOURS,
  };
}

export const draftOf = (one: Subscription): Draft => ({
  ...one,
  batch_interval_hours: one.batch_interval_hours ?? DEFAULT_INTERVAL_HOURS,
});

/** Returns the settings that apply to the draft's kind of subscription, as fields of a request. */
function fieldsOf(draft: Draft) {
  const { events, payload_mode, suppress_native_notifications, ordering } = draft;
  const common = {
    label: draft.label.trim(),
    webhook_url: draft.webhook_url.trim(),
    standard_webhooks: draft.standard_webhooks,
  };
  if (draft.delivery_kind === "batch")
    return { ...common, batch_interval_hours: draft.batch_interval_hours };
  return { ...common, events, payload_mode, suppress_native_notifications, ordering };
}

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
