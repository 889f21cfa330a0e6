import { checkedByHandler, shapeOf } from "../http/faults.ts";
import { checkNewWebhookUrl, type EgressPolicy, type Lookup } from "../lib/egress.ts";
import { invalid, type FieldErrors } from "../lib/problem.ts";
import { SUBSCRIBABLE_EVENTS, TEST_EVENT } from "../outbox/event.ts";
import { eventsFault, intervalFault, settingsOf } from "./decide.ts";
import { NewSubscriptionBody, type SubscriptionSettings } from "./model.ts";

export interface UrlRules {
  readonly egress: EgressPolicy;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup;
}

/** The body of create, checked by `readNewSubscription`. */
export const newSubscriptionBody = checkedByHandler(NewSubscriptionBody);

/** Reads the body of create; all bad fields are named in one 422, whichever rule they break (decisions.md 1 and 3). */
export async function readNewSubscription(
  rules: UrlRules,
  body: unknown,
): Promise<SubscriptionSettings> {
  const shape = shapeOf(NewSubscriptionBody, body);
  const faults: FieldErrors = "faults" in shape ? { ...shape.faults } : {};
  const given: Record<string, unknown> = Object(body);
  // These say more than the schema does, so they replace its words.
  const events = eventsFault(given["events"], SUBSCRIBABLE_EVENTS, TEST_EVENT);
  if (events !== undefined) faults["events"] = [events];
  const interval = intervalFault(given);
  if (interval !== undefined) faults["batch_interval_hours"] ??= [interval];
  const url = await urlFault(rules, given["webhook_url"]);
  if (url !== undefined) faults["webhook_url"] ??= [url];
  if ("value" in shape && Object.keys(faults).length === 0) return settingsOf(shape.value);
  throw invalid(faults);
}

async function urlFault(rules: UrlRules, url: unknown): Promise<string | undefined> {
  if (typeof url !== "string") return undefined;
  const { egress, lookup } = rules;
  const check = await checkNewWebhookUrl(url, egress, lookup && { lookup });
  return check.kind === "refused" ? check.reason : undefined;
}
