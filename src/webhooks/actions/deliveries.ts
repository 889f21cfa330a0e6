import { isUlid, type Page } from "../../http/list.ts";
import { deliveryState } from "../decide.ts";
import type { Attempt, AttemptFilter, Delivery } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";
import * as attempts from "../queries/attempts.ts";
import { deliveryOf } from "../queries/events.ts";
import { stillThere, type WebhookDeps } from "./deps.ts";

/** The attempts of so many rounds are more than anybody reads; the list of attempts has all of them. */
const ATTEMPTS_SHOWN = 100;

export function listAttempts(
  { db }: Pick<WebhookDeps, "db">,
  subscription: Pick<Subscription, "id">,
  filter: AttemptFilter,
  page: Page,
): Promise<Attempt[]> {
  return attempts.attemptsOf(db, subscription.id, filter, page);
}

/** Where an event stands at this subscription; 404 if it was never queued for it, or is forgotten by now. */
export async function showEvent(
  { db }: Pick<WebhookDeps, "db">,
  subscription: Subscription,
  eventId: string,
): Promise<Delivery> {
  const row = stillThere(
    isUlid(eventId) ? await deliveryOf(db, subscription.id, eventId) : undefined,
  );
  return {
    ...row,
    state: deliveryState(row.state, subscription),
    attempts: await attempts.attemptsOfEvent(db, subscription.id, eventId, ATTEMPTS_SHOWN),
  };
}
