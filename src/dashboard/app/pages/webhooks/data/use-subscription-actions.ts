import { useQueryClient, type QueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../../api/client.ts";
import { useApi } from "../../../session/session.tsx";
import { keys } from "./data.ts";
import { deliveryAt, subscriptionAt, type Subscription } from "./reads.ts";
import { changesOf, createBody, type Draft } from "./draft.ts";

/** Whether the events that were held while a subscription was disabled are delivered or skipped. */
export type Held = "deliver" | "skip";

/** A period; without an end it lasts until now. */
interface Period {
  readonly since: string;
  readonly until?: string;
}

/** Creates a subscription. Returns it with its secret. */
export function useCreateSubscription() {
  const api = useApi();
  const queries = useQueryClient();
  return async (draft: Draft) => {
    type Body = Parameters<typeof api.partner.webhooks.post>[0];
    // Events and hours were selected from the catalog, but their types are plain strings; the API validates
    // them.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = createBody(draft) as Body;
    const created = await answerOf(api.partner.webhooks.post(body));
    void queries.invalidateQueries({ queryKey: keys.list });
    return created;
  };
}

/** The mutations of one subscription. Each updates the cached data. */
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
      // The values come from the catalog, as in a creation; the API validates them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = changesOf(draft, current) as Body;
      const updated = await answerOf(subscription.patch(body));
      queries.setQueryData(keys.one(id), updated);
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** Enables the subscription. Returns the id of the test event, if one is sent first. */
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
     * Deletes the subscription and drops its cached data. `onRemoved` must leave its pages, which would read
     * it again.
     */
    remove: async (onRemoved: () => void) => {
      await answerOf(subscription.delete());
      onRemoved();
      queries.removeQueries({ queryKey: keys.one(id) });
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** Reads the signing secret. The API writes each read into the audit log. */
    readSecret: async (): Promise<string> => {
      const { secret } = await answerOf(subscription.secret.post());
      return secret;
    },
    /** Rotates the signing secret and returns the new one. */
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
    /** Sends a test event, by default `webhook.test`. Returns its id. */
    sendTest: async (event?: string): Promise<string> => {
      type Body = Parameters<typeof subscription.test.post>[0];
      // The event was selected from the catalog; the API validates it.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = (event === undefined ? {} : { event }) as Body;
      const { event_id: eventId } = await answerOf(subscription.test.post(body));
      return eventId;
    },
    redeliver: async (eventId: string) => {
      await answerOf(deliveryAt(api, id, eventId).redeliver.post());
      await queries.invalidateQueries({ queryKey: keys.delivery(id, eventId) });
    },
    /** Queues events again. Returns their number. */
    recover: async (period: Period): Promise<number> => {
      const { queued } = await answerOf(subscription.recover.post({ ...period }));
      return queued;
    },
  };
}
