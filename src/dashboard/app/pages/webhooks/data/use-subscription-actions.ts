import { useQueryClient, type QueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../../api/client.ts";
import { useApi } from "../../../session/session.tsx";
import { keys } from "./data.ts";
import { deliveryAt, subscriptionAt, type Subscription } from "./reads.ts";
import { changesOf, createBody, type Draft } from "./draft.ts";

/** It says what becomes of the events that were held while a subscription was disabled. */
export type Held = "deliver" | "skip";

/** A period without an end lasts until now. */
interface Period {
  readonly since: string;
  readonly until?: string;
}

/** Answers the subscription with its secret. */
export function useCreateSubscription() {
  const api = useApi();
  const queries = useQueryClient();
  return async (draft: Draft) => {
    type Body = Parameters<typeof api.partner.webhooks.post>[0];
    // The events and hours in it were picked from the catalog; the server has the last word.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = createBody(draft) as Body;
    const created = await answerOf(api.partner.webhooks.post(body));
    void queries.invalidateQueries({ queryKey: keys.list });
    return created;
  };
}

/** The actions on one subscription; what is shown of it follows them. */
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
      // The same holds as in a creation.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = changesOf(draft, current) as Body;
      const updated = await answerOf(subscription.patch(body));
      queries.setQueryData(keys.one(id), updated);
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** Answers the test event that goes first, if one was asked for. */
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
    /** Forgets what was read of it; `onRemoved` must leave the pages that show it. */
    remove: async (onRemoved: () => void) => {
      await answerOf(subscription.delete());
      onRemoved();
      queries.removeQueries({ queryKey: keys.one(id) });
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** The server writes each look into the audit log. */
    readSecret: async (): Promise<string> => {
      const { secret } = await answerOf(subscription.secret.post());
      return secret;
    },
    /** Answers the new secret. */
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
    /** Answers the id of the test event, a `webhook.test` if no other one is named. */
    sendTest: async (event?: string): Promise<string> => {
      type Body = Parameters<typeof subscription.test.post>[0];
      // It was picked from the catalog; the server has the last word.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = (event === undefined ? {} : { event }) as Body;
      const { event_id: eventId } = await answerOf(subscription.test.post(body));
      return eventId;
    },
    redeliver: async (eventId: string) => {
      await answerOf(deliveryAt(api, id, eventId).redeliver.post());
      await queries.invalidateQueries({ queryKey: keys.delivery(id, eventId) });
    },
    /** Answers how many events are queued again. */
    recover: async (period: Period): Promise<number> => {
      const { queued } = await answerOf(subscription.recover.post({ ...period }));
      return queued;
    },
  };
}
