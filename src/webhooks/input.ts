import { checkedByHandler, examine } from "../http/fields.ts";
import { checkNewWebhookUrl, type EgressPolicy } from "../lib/egress.ts";
import type { Lookup } from "../lib/name-resolver.ts";
import { invalid, type FieldErrors } from "../lib/problem.ts";
import { SUBSCRIBABLE_EVENTS, TEST_EVENT } from "../outbox/event.ts";
import { eventsFault, intervalFault, settingsOf } from "./decide.ts";
import {
  NewSubscriptionBody,
  SubscriptionObject,
  SubscriptionUpdateBody,
  type Subscription,
  type SubscriptionSettings,
  type SubscriptionUpdate,
} from "./model.ts";

export interface UrlRules {
  readonly egress: EgressPolicy;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup | undefined;
  /** The partner whose subscription it is. */
  readonly partnerId?: number | null;
}

type Given = Readonly<Record<string, unknown>>;

/** The body of create, checked by `readNewSubscription`. */
export const newSubscriptionBody = checkedByHandler(NewSubscriptionBody);
/** The body of update, checked by `readUpdate`. */
export const updateBody = checkedByHandler(SubscriptionUpdateBody);

/** Reads the body of create; all bad fields are named in one 422, whichever rule they break (contract 2.5 and 6.4). */
export async function readNewSubscription(
  rules: UrlRules,
  body: unknown,
): Promise<SubscriptionSettings> {
  const shape = examine(NewSubscriptionBody, withTrimmedLabel(body));
  const faults: FieldErrors = "faults" in shape ? { ...shape.faults } : {};
  const given: Given = Object(body);
  Object.assign(faults, filterFault(given));
  const interval = intervalFault(given);
  if (interval !== undefined) faults["batch_interval_hours"] ??= [interval];
  const url = await urlFault(rules, given["webhook_url"]);
  if (url !== undefined) faults["webhook_url"] ??= [url];
  if ("value" in shape && Object.keys(faults).length === 0) return settingsOf(shape.value);
  throw invalid(faults);
}

/** Reads the body of update for this subscription, by the rules of create for every field that is sent. */
export async function readUpdate(
  rules: UrlRules,
  body: unknown,
  current: Pick<Subscription, "deliveryKind">,
): Promise<SubscriptionUpdate> {
  const shape = examine(SubscriptionUpdateBody, withTrimmedLabel(body));
  const faults: FieldErrors = "faults" in shape ? { ...shape.faults } : {};
  const given: Given = Object(body);
  Object.assign(faults, readOnlyFaults(given), filterFault(given));
  const { deliveryKind } = current;
  if ("delivery_kind" in given && given["delivery_kind"] !== deliveryKind)
    faults["delivery_kind"] ??= [`stays ${deliveryKind}: each kind has a subscription of its own`];
  if ("batch_interval_hours" in given) {
    const interval = intervalFault({ ...given, delivery_kind: deliveryKind });
    if (interval !== undefined) faults["batch_interval_hours"] ??= [interval];
  }
  const url = await urlFault(rules, given["webhook_url"]);
  if (url !== undefined) faults["webhook_url"] ??= [url];
  if ("value" in shape && Object.keys(faults).length === 0) return shape.value;
  throw invalid(faults);
}

/** Blanks around a label are no part of it, so one of blanks alone is empty (contract 6.4). */
function withTrimmedLabel(body: unknown): unknown {
  const label: unknown = Reflect.get(Object(body), "label");
  return typeof label === "string" ? { ...Object(body), label: label.trim() } : body;
}

/** Fields of the subscription object that no update sets. */
function readOnlyFaults(given: Given): FieldErrors {
  const known = Object.keys(SubscriptionObject.properties);
  const readOnly = known.filter((field) => !(field in SubscriptionUpdateBody.properties));
  const sent = readOnly.filter((field) => Object.hasOwn(given, field));
  return Object.fromEntries(sent.map((field) => [field, ["is read-only"]]));
}

/** This says more than the schema does, so it replaces its words. */
function filterFault(given: Given): FieldErrors {
  const events = eventsFault(given["events"], SUBSCRIBABLE_EVENTS, TEST_EVENT);
  return events === undefined ? {} : { events: [events] };
}

async function urlFault(rules: UrlRules, url: unknown): Promise<string | undefined> {
  if (typeof url !== "string") return undefined;
  const { egress, lookup, partnerId } = rules;
  const check = await checkNewWebhookUrl(url, egress, { lookup, partnerId });
  return check.kind === "refused" ? check.reason : undefined;
}
