import { useQueryClient, type QueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../../api/client.ts";
import { useApi } from "../../../session/session.tsx";
import { keys } from "./data.ts";
import { deliveryAt, subscriptionAt, type Subscription } from "./reads.ts";
import { changesOf, createBody, type Draft } from "./draft.ts";

/** Decision about the events that were held while a subscription was disabled: deliver or skip them. */
export type Held = "deliver" | "skip";

/** Period between two ISO 8601 times; without `until`, the period ends now. */
interface Period {
  readonly since: string;
  readonly until?: string;
}

/** Returns a function that creates a subscription and returns it together with its signing secret. */
export function useCreateSubscription() {
  const api = useApi();
  const queries = useQueryClient();
  return async (draft: Draft) => {
    type Body = Parameters<typeof api.partner.webhooks.post>[0];
    // The assertion is needed because the draft types events and hours as plain strings. They were selected
    // from the catalog, and the API validates them.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = createBody(draft) as Body;
    const created = await answerOf(api.partner.webhooks.post(body));
    void queries.invalidateQueries({ queryKey: keys.list });
    return created;
  };
}

/** Requests that change or use one subscription. Each request updates the cached data of the subscription. */
export function useSubscriptionActions(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  return { ...settingActions(api, queries, id), ...deliveryActions(api, queries, id) };
}

function settingActions(api: ApiClient, queries: QueryClient, id: string) {
  const subscription = subscriptionAt(api, id);
  return {
    update: async (draft: Draft, current: Subscription) => {
      type Body = Parameters<typeof subscription.patch>[0];
      // The assertion is needed because the draft types events as plain strings. They were selected from the
      // catalog, and the API validates them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = changesOf(draft, current) as Body;
      const updated = await answerOf(subscription.patch(body));
      queries.setQueryData(keys.one(id), updated);
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /**
     * Enables the subscription. Returns the id of the test event that is sent before the held events; null if
     * none is sent.
     */
    enable: async (held: Held, test: boolean): Promise<string | null> => {
      const { test_event_id: eventId, ...enabled } = await answerOf(
        subscription.enable.post({ held, test }),
      );
      queries.setQueryData(keys.one(id), enabled);
      void queries.invalidateQueries({ queryKey: keys.all });
      return eventId ?? null;
    },
    disable: async () => {
      queries.setQueryData(keys.one(id), await answerOf(subscription.disable.post()));
      void queries.invalidateQueries({ queryKey: keys.all });
    },
    /**
     * Deletes the subscription and its cached data. `onRemoved` must navigate away from the subscription's
     * pages, because they would read the deleted subscription again.
     */
    remove: async (onRemoved: () => void) => {
      await answerOf(subscription.delete());
      onRemoved();
      queries.removeQueries({ queryKey: keys.one(id) });
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** Reads the signing secret of the subscription. The API writes each read into the audit log. */
    readSecret: async (): Promise<string> => {
      const { secret } = await answerOf(subscription.secret.post());
      return secret;
    },
    /**
     * Rotates the signing secret and returns the new secret. During the grace period deliveries are signed with
     * both secrets.
     */
    rotateSecret: async (graceHours: number): Promise<string> => {
      const body = { grace_period_hours: graceHours };
      const { secret, ...rotated } = await answerOf(subscription["rotate-secret"].post(body));
      queries.setQueryData(keys.one(id), rotated);
      return secret;
    },
    endPreviousSecret: async () => {
      await answerOf(subscription["previous-secret"].delete());
      queries.setQueryData<Subscription>(
        keys.one(id),
        (before) => before && { ...before, previous_secret_expires_at: null },
      );
    },
  };
}

function deliveryActions(api: ApiClient, queries: QueryClient, id: string) {
  const subscription = subscriptionAt(api, id);
  return {
    /** Sends a test event, by default `webhook.test`, and returns the id of the event. */
    sendTest: async (event?: string): Promise<string> => {
      type Body = Parameters<typeof subscription.test.post>[0];
      // The assertion is needed because the event name is a plain string. It was selected from the catalog, and
      // the API validates it.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = (event === undefined ? {} : { event }) as Body;
      const { event_id: eventId } = await answerOf(subscription.test.post(body));
      return eventId;
    },
    redeliver: async (eventId: string) => {
      await answerOf(deliveryAt(api, id, eventId).redeliver.post());
      await queries.invalidateQueries({ queryKey: keys.delivery(id, eventId) });
    },
    /** Queues the undelivered events of a period again and returns the number of queued events. */
    recover: async (period: Period): Promise<number> => {
      const { queued } = await answerOf(subscription.recover.post({ ...period }));
      return queued;
    },
  };
}
