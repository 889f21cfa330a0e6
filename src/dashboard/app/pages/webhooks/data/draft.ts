import type { DeliveryKind, Subscription } from "./reads.ts";

/** Values of the forms that create or change a subscription, before they are sent. */
export interface Draft {
  readonly kind: DeliveryKind;
  readonly url: string;
  readonly label: string;
  /** Names of the selected events; null for all events, including those added in the future. */
  readonly events: readonly string[] | null;
  readonly payloadMode: Subscription["payload_mode"];
  readonly suppressNative: boolean;
  readonly ordering: Subscription["ordering"];
  readonly standardWebhooks: boolean;
  readonly intervalHours: number;
}

/**
 * Maps a field of the draft to the API field of the same value, for the form fields that show their own
 * validation errors.
 */
export const DRAFT_FIELDS = {
  url: "webhook_url",
  label: "label",
  intervalHours: "batch_interval_hours",
  events: "events",
  payloadMode: "payload_mode",
  ordering: "ordering",
} as const;

const DEFAULT_INTERVAL_HOURS = 4;

export function newDraft(kind: DeliveryKind): Draft {
  return {
    kind,
    url: "",
    label: "",
    events: null,
    payloadMode: "full",
    suppressNative: false,
    ordering: "subscription",
    standardWebhooks: false,
    intervalHours: DEFAULT_INTERVAL_HOURS,
  };
}

export function draftOf(one: Subscription): Draft {
  return {
    kind: one.delivery_kind,
    url: one.webhook_url,
    label: one.label,
    events: one.events,
    payloadMode: one.payload_mode,
    suppressNative: one.suppress_native_notifications,
    ordering: one.ordering,
    standardWebhooks: one.standard_webhooks,
    intervalHours: one.batch_interval_hours ?? DEFAULT_INTERVAL_HOURS,
  };
}

/** Returns the settings that apply to the kind of subscription, under the names of the API. */
function fieldsOf(draft: Draft) {
  const common = {
    label: draft.label.trim(),
    webhook_url: draft.url.trim(),
    standard_webhooks: draft.standardWebhooks,
  };
  if (draft.kind === "batch") return { ...common, batch_interval_hours: draft.intervalHours };
  return {
    ...common,
    events: draft.events === null ? null : [...draft.events],
    payload_mode: draft.payloadMode,
    suppress_native_notifications: draft.suppressNative,
    ordering: draft.ordering,
  };
}

export function createBody(draft: Draft) {
  return { delivery_kind: draft.kind, ...fieldsOf(draft) };
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
  return normal(one) === normal(other);
}

function normal(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? value.map(String).toSorted() : value);
}

interface UrlHint {
  /** `error`: the URL is certainly invalid. `advice`: the URL may be valid after all, so the form can be sent. */
  readonly kind: "error" | "advice";
  readonly text: string;
}

const MAX_URL_CHARS = 2_048;
const INTERNAL =
  /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[|0\.0\.0\.0)|\.(local|internal|localhost)$/;

/** Checks a webhook URL in the browser while the user types. The API makes the final decision. */
export function urlHint(text: string): UrlHint | undefined {
  if (text === "") return undefined;
  if (text.length > MAX_URL_CHARS)
    return error(`A URL has at most ${MAX_URL_CHARS.toLocaleString()} characters.`);
  if (/\s/.test(text)) return error("A URL has no spaces.");
  const url = /^https?:\/\/[^/?#]/i.test(text) ? URL.parse(text) : null;
  if (url === null) return error("Enter the whole address, such as https://example.com/webhooks.");
  if (url.username !== "" || url.password !== "")
    return error("Leave out the user name and password: the signature says that it is us.");
  if (text.includes("#")) return error("Leave out the part from # on: servers never see it.");
  if (INTERNAL.test(url.hostname))
    return advice(
      "This address is not public. It works only where the server allows it, in development.",
    );
  if (url.protocol === "http:") return advice("Outside development only https is accepted.");
  return undefined;
}

/** Derives the default label of a subscription from the host name of its URL. */
export function labelFor(text: string): string {
  return URL.parse(text)?.hostname.slice(0, 100) ?? "";
}

const error = (text: string): UrlHint => ({ kind: "error", text });
const advice = (text: string): UrlHint => ({ kind: "advice", text });
