import { useQueryClient, type QueryClient } from "@tanstack/react-query";

import type { ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../session/session.tsx";
import { keys } from "./data.ts";
import type { Subscription } from "./reads.ts";
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
    type Body = Parameters<typeof api.call<"POST", "/partner/webhooks">>[2]["body"];
    // The events and hours in it were picked from the catalog; the server has the last word.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = createBody(draft) as Body;
    const created = await api.call("POST", "/partner/webhooks", { body });
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
  const params = { id };
  return {
    update: async (draft: Draft, current: Subscription) => {
      type Body = Parameters<typeof api.call<"PATCH", "/partner/webhooks/:id">>[2]["body"];
      // The same holds as in a creation.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const body = changesOf(draft, current) as Body;
      const updated = await api.call("PATCH", "/partner/webhooks/:id", { params, body });
      queries.setQueryData(keys.one(id), updated);
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    enable: async (held: Held) => {
      const body = { held };
      const enabled = await api.call("POST", "/partner/webhooks/:id/enable", { params, body });
      queries.setQueryData(keys.one(id), enabled);
      void queries.invalidateQueries({ queryKey: keys.all });
    },
    /** Forgets what was read of it; `onRemoved` must leave the pages that show it. */
    remove: async (onRemoved: () => void) => {
      await api.call("DELETE", "/partner/webhooks/:id", { params });
      onRemoved();
      queries.removeQueries({ queryKey: keys.one(id) });
      void queries.invalidateQueries({ queryKey: keys.list });
    },
    /** The server writes each look into the audit log. */
    readSecret: async (): Promise<string> => {
      const { secret } = await api.call("POST", "/partner/webhooks/:id/secret", { params });
      return secret;
    },
    /** Answers the new secret. */
    rotateSecret: async (graceHours: number): Promise<string> => {
      const body = { grace_period_hours: graceHours };
      const path = "/partner/webhooks/:id/rotate-secret";
      const { secret, ...subscription } = await api.call("POST", path, { params, body });
      queries.setQueryData(keys.one(id), subscription);
      return secret;
    },
  };
}

function deliveryActions(api: ApiClient, queries: QueryClient, id: string) {
  const params = { id };
  return {
    /** Answers the id of the test event. */
    sendTest: async (): Promise<string> => {
      const { event_id: eventId } = await api.call("POST", "/partner/webhooks/:id/test", {
        params,
      });
      return eventId;
    },
    redeliver: async (eventId: string) => {
      const path = "/partner/webhooks/:id/deliveries/:eventId/redeliver";
      await api.call("POST", path, { params: { id, eventId } });
      await queries.invalidateQueries({ queryKey: keys.delivery(id, eventId) });
    },
    /** Answers how many events are queued again. */
    recover: async (period: Period): Promise<number> => {
      const body = { ...period };
      const { queued } = await api.call("POST", "/partner/webhooks/:id/recover", { params, body });
      return queued;
    },
  };
}
