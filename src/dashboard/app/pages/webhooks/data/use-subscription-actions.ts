import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf } from "../../../api/client.ts";
import { useReader } from "./data.ts";
import {
  deliveryAt,
  deliveryOptions,
  healthOptions,
  newestCheckOptions,
  type Reader,
  RESENT,
  retryingOptions,
  type Subscription,
  subscriptionAt,
  subscriptionKey,
  subscriptionOptions,
  subscriptionsOptions,
  WEBHOOKS,
} from "./reads.ts";
import { changesOf, createBody, type Draft } from "./draft.ts";

/**
 * Both forms of a signing secret. The second form is null unless the subscription has the headers of Standard
 * Webhooks.
 */
export interface Secrets {
  readonly secret: string;
  readonly standard_webhooks_secret: string | null;
}

/** Decision about the events that were held while a subscription was disabled: deliver or skip them. */
export type Held = "deliver" | "skip";

/** Period between two ISO 8601 times; without `until`, the period ends now. */
export interface Period {
  readonly since: string;
  readonly until?: string;
}

/** Returns a function that creates a subscription and returns it together with its signing secret. */
export function useCreateSubscription() {
  const reader = useReader();
  const queries = useQueryClient();
  const { webhooks } = reader.api.partner;
  return async (draft: Draft) => {
    type Body = Parameters<typeof webhooks.post>[0];
    // The assertion is needed because the draft types events and hours as plain strings. They were selected
    // from the catalog, and the API validates them.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = createBody(draft) as Body;
    const created = await answerOf(webhooks.post(body));
    void queries.invalidateQueries({ queryKey: subscriptionsOptions(reader).queryKey });
    return created;
  };
}

/** Requests that change or use one subscription. Each request updates the cached data of the subscription. */
export function useSubscriptionActions(id: string) {
  const reader = useReader();
  const queries = useQueryClient();
  return { ...settingActions(reader, queries, id), ...deliveryActions(reader, queries, id) };
}

function settingActions(reader: Reader, queries: QueryClient, id: string) {
  const subscription = subscriptionAt(reader.api, id);
  const { queryKey } = subscriptionOptions(reader, id);
  const refreshList = () =>
    queries.invalidateQueries({ queryKey: subscriptionsOptions(reader).queryKey });
  return {
    update: async (draft: Draft, current: Subscription) => {
      type Body = Parameters<typeof subscription.patch>[0];
      // The assertion is needed because the draft types events as plain strings. They were selected from the
      // catalog, and the API validates them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = changesOf(draft, current) as Body;
      const updated = await answerOf(subscription.patch(body));
      queries.setQueryData(queryKey, updated);
      void refreshList();
    },
    /**
     * Enables the subscription. With `test`, the API sends a test event and enables the subscription only if it is
     * accepted; then returns the id of this event, otherwise null.
     */
    enable: async (held: Held, test: boolean): Promise<string | null> => {
      const { test_event_id: eventId, ...enabled } = await answerOf(
        subscription.enable.post({ held, test }),
      );
      queries.setQueryData(queryKey, enabled);
      void queries.invalidateQueries({ queryKey: WEBHOOKS });
      return eventId ?? null;
    },
    disable: async () => {
      queries.setQueryData(queryKey, await answerOf(subscription.disable.post()));
      void queries.invalidateQueries({ queryKey: WEBHOOKS });
    },
    sendBatch: async () => {
      queries.setQueryData(queryKey, await answerOf(subscription.batch.post()));
      void queries.invalidateQueries({ queryKey: WEBHOOKS });
    },
    /**
     * Deletes the subscription and its cached data. `onRemoved` must navigate away from the subscription's
     * pages, because they would read the deleted subscription again.
     */
    remove: async (onRemoved: () => void) => {
      await answerOf(subscription.delete());
      // Removes the subscription from the cached list, because the list would read the health of the deleted
      // subscription.
      queries.setQueryData(
        subscriptionsOptions(reader).queryKey,
        (list) => list && { ...list, data: list.data.filter((one) => one.id !== id) },
      );
      onRemoved();
      queries.removeQueries({ queryKey });
      void refreshList();
    },
    /** Reads the signing secret of the subscription. The API writes each read into the audit log. */
    readSecret: (): Promise<Secrets> => answerOf(subscription.secret.post()),
    /**
     * Rotates the signing secret and returns the new secret. During the grace period deliveries are signed with
     * both secrets.
     */
    rotateSecret: async (graceHours: number): Promise<Secrets> => {
      const body = { grace_period_hours: graceHours };
      const {
        secret,
        standard_webhooks_secret: standard,
        ...rotated
      } = await answerOf(subscription["rotate-secret"].post(body));
      queries.setQueryData(queryKey, rotated);
      // A report from before the rotation says nothing about the new secret.
      queries.setQueryData(newestCheckOptions(id).queryKey, null);
      return { secret, standard_webhooks_secret: standard };
    },
    endPreviousSecret: async () => {
      await answerOf(subscription["previous-secret"].delete());
      queries.setQueryData(
        queryKey,
        (before) => before && { ...before, previous_secret_expires_at: null },
      );
    },
  };
}

/** Time in ms for which the page follows a retry: that of an attempt, with some more for its start. */
const FOLLOWED_MS = 20_000;
const FOLLOW_MS = 500;

/** Reads a delivery that waits for a retry again and again until the retry has an outcome. */
async function followRetry(reader: Reader, queries: QueryClient, [id, eventId]: [string, string]) {
  const options = { ...deliveryOptions(reader, id, eventId), staleTime: 0 };
  const { queryKey } = retryingOptions(id, eventId);
  const last = queries.getQueryData(options.queryKey)?.attempts.at(-1)?.id;
  queries.setQueryData(queryKey, true);
  try {
    for (let ms = 0; ms < FOLLOWED_MS; ms += FOLLOW_MS) {
      const delivery = await queries.fetchQuery(options);
      if (delivery.state !== "waiting" || delivery.attempts.at(-1)?.id !== last) break;
      await new Promise((resolve) => {
        setTimeout(resolve, FOLLOW_MS);
      });
    }
  } catch {
    // The queries of the page read the delivery again, and show the error.
  }
  queries.setQueryData(queryKey, false);
  void queries.invalidateQueries({ queryKey: healthOptions(reader, id).queryKey });
}

function deliveryActions(reader: Reader, queries: QueryClient, id: string) {
  const subscription = subscriptionAt(reader.api, id);
  /** Counts the events of resends again after a request that queues some of them. */
  const countAgain = async <Answer>(request: Promise<Answer>): Promise<Answer> => {
    const answer = await request;
    void queries.invalidateQueries({ queryKey: subscriptionKey(id, RESENT) });
    return answer;
  };
  return {
    /** Requests a check of the endpoint. While one is under way, the API returns the id of that one. */
    requestCheck: async () => {
      const { check_id: checkId } = await answerOf(subscription.check.post());
      queries.setQueryData(newestCheckOptions(id).queryKey, checkId);
    },
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
      await countAgain(answerOf(deliveryAt(reader.api, id, eventId).redeliver.post()));
      await queries.invalidateQueries({ queryKey: deliveryOptions(reader, id, eventId).queryKey });
    },
    /** Makes the retry that an event waits for at once. The page follows it until it has an outcome. */
    retry: async (eventId: string) => {
      await countAgain(answerOf(deliveryAt(reader.api, id, eventId).redeliver.post()));
      void followRetry(reader, queries, [id, eventId]);
    },
    /**
     * Queues events that are no longer in the queue again, in the order of `eventIds`. Returns the number of queued
     * events.
     */
    redeliverAll: async (eventIds: readonly string[]): Promise<number> => {
      const body = { event_ids: [...eventIds] };
      const { queued } = await countAgain(answerOf(subscription.redeliver.post(body)));
      return queued;
    },
    /** Queues the undelivered events of a period again. Returns how many these are, and their numbers. */
    recover: (period: Period) => countAgain(answerOf(subscription.recover.post({ ...period }))),
    /** Returns the number of events that `recover` would queue. */
    countUndelivered: async (period: Period): Promise<number> => {
      const { queued } = await answerOf(subscription.recover.post({ ...period, dry_run: true }));
      return queued;
    },
  };
}

/** Time in ms for which events can be resent: the retention time (contract 7.15), without the minutes of a slow clock. */
const KEPT_MS = 30 * 86_400_000 - 600_000;
const COUNT_MS = 60_000;

/** Returns the number of events that were not delivered and can be resent, as "resend" counts them. */
export function useUndelivered({
  id,
  created_at: createdAt,
}: Pick<Subscription, "id" | "created_at">): number {
  const { countUndelivered } = useSubscriptionActions(id);
  const { data = 0 } = useQuery({
    queryKey: subscriptionKey(id, RESENT, "undelivered"),
    queryFn: () => {
      const since = Math.max(Date.parse(createdAt), Date.now() - KEPT_MS);
      return countUndelivered({ since: new Date(since).toISOString() });
    },
    refetchInterval: COUNT_MS,
    gcTime: 0,
  });
  return data;
}
