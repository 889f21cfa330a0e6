import { useQuery } from "@tanstack/react-query";

import { NearTime, useNow } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import { healthOptions, type SubscriptionProps } from "../data/reads.ts";
import { eventsWait } from "../data/subscription-words.ts";

const TICK_MS = 10_000;

interface BatchWordsProps {
  readonly waiting: number;
  readonly isActive: boolean;
  readonly next: string;
}

/** Says in a sentence how many events wait for a batch, and when it is sent. */
export function BatchWords({ waiting, isActive, next }: BatchWordsProps) {
  const isDue = Date.parse(next) <= useNow(TICK_MS);
  const words = eventsWait(waiting);
  if (!isActive) return waiting > 0 && `${words} until the subscription is enabled.`;
  if (isDue) return `${words} for the batch that is due now.`;
  return (
    <>
      {words} for the batch at <NearTime at={next} />.
    </>
  );
}

/** Says how many events of a batch subscription wait. Renders nothing for an immediate one. */
export function BatchWait({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive, next_batch_at: next } = subscription;
  const waiting = useQuery(healthOptions(useReader(), id)).data?.waiting_for_batch;
  if (next === null || waiting === undefined) return null;
  return <BatchWords {...{ waiting, isActive, next }} />;
}
