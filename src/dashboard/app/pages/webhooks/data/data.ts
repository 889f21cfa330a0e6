import { useQueryClient } from "@tanstack/react-query";
import { createContext, use, useCallback, useRef } from "react";

import { useLive, useStreamStart } from "../../../session/live.ts";
import { useApi, useSession } from "../../../session/session.tsx";
import type { AttemptRow } from "./filters.ts";
import {
  type Health,
  healthOptions,
  type Reader,
  STATS,
  streamPath,
  type Subscription,
  subscriptionKey,
  subscriptionOptions,
} from "./reads.ts";

/** Partner whose webhooks an operator is viewing. */
interface ViewedPartner {
  readonly id: number;
  readonly name: string;
}

/** Provides the partner whose webhooks an operator is viewing; undefined on a partner's own pages. */
export const ViewedPartnerContext = createContext<ViewedPartner | undefined>(undefined);

export const useViewedPartner = (): ViewedPartner | undefined => use(ViewedPartnerContext);

/**
 * Returns whether controls that change something must be hidden, which is the case for operators and for
 * read-only portal links.
 */
export function useIsReadOnly(): boolean {
  const { portal } = useSession();
  const isViewed = useViewedPartner() !== undefined;
  return isViewed || (portal?.isReadOnly ?? false);
}

/** Returns whether the viewer may show, rotate and create signing secrets. */
export function useSeesSecrets(): boolean {
  const { portal } = useSession();
  return !useIsReadOnly() && !(portal?.isOfOperator ?? false);
}

/**
 * Returns whether the viewer has a button that enables the subscription. Nobody has one while the partner is suspended
 * (contract 10.1), and the partner has none after an operator has disabled the subscription (contract 6.16).
 */
export function useMayEnable({
  disabled_reason: reason,
}: Pick<Subscription, "disabled_reason">): boolean {
  const isOperator = useViewedPartner() !== undefined;
  const isReadOnly = useIsReadOnly();
  return reason !== "suspended" && (isOperator || (!isReadOnly && reason !== "operator"));
}

export function useReader(): Reader {
  return { api: useApi(), partnerId: useViewedPartner()?.id };
}

export type FollowAttempts = (listener: (row: AttemptRow) => void) => () => void;

/**
 * Opens the event stream of a subscription, which the whole page shares. Stream messages update the query
 * cache, and delivery attempts are passed to the listeners that were added with `follow`.
 */
export function useSubscriptionLive(id: string) {
  const client = useQueryClient();
  const reader = useReader();
  const listeners = useRef(new Set<(row: AttemptRow) => void>());
  const hasUpdates = useRef(false);
  const state = useLive(streamPath(reader, id), {
    subscription: (data: Subscription) =>
      client.setQueryData(subscriptionOptions(reader, id).queryKey, data),
    attempt: (row: AttemptRow) => {
      hasUpdates.current = true;
      for (const listener of listeners.current) listener(row);
    },
    health: (data: Health) => {
      client.setQueryData(healthOptions(reader, id).queryKey, data);
      // Reads the charts again with a health message and not with each attempt, because health messages are less
      // frequent.
      if (hasUpdates.current)
        void client.invalidateQueries({ queryKey: subscriptionKey(id, STATS) });
      hasUpdates.current = false;
    },
  });
  useStreamStart(state, () => {
    hasUpdates.current = true;
  });
  const follow: FollowAttempts = useCallback((listener) => {
    listeners.current.add(listener);
    return () => listeners.current.delete(listener);
  }, []);
  return { state, follow };
}
