import { useQuery } from "@tanstack/react-query";

import { NearTime, useNow } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import { healthOptions, type SubscriptionProps } from "../data/reads.ts";
import { eventsWait } from "../data/subscription-words.ts";

const TICK_MS = 10_000;

/** Says how many events of a batch subscription wait, and when they are sent. Renders nothing for an immediate one. */
export function BatchWait({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive, next_batch_at: next } = subscription;
  const waiting = useQuery(healthOptions(useReader(), id)).data?.waiting_for_batch;
  const now = useNow(TICK_MS);
  if (next === null || waiting === undefined) return null;
  const words = eventsWait(waiting);
  if (!isActive) return waiting > 0 && `${words} until the subscription is enabled.`;
  if (Date.parse(next) <= now) return `${words} for the batch that is due now.`;
  return (
    <>
      {words} for the batch at <NearTime at={next} />.
    </>
  );
}
