import { Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { DataTable } from "../../../ui/data-table.tsx";
import { ActionButton } from "../../../ui/dialog.tsx";
import { Dimmed, Panel } from "../../../ui/layout.tsx";
import { Time } from "../../../ui/time.tsx";
import { useIsReadOnly, useReader } from "../data/data.ts";
import { healthOptions, type SubscriptionProps, waitingOptions } from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { Review } from "./review.tsx";

/**
 * Lists the newest events that wait for the next batch, with a button that sends the batch now. Renders nothing while
 * no event waits.
 */
export function WaitingEvents({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const reader = useReader();
  const count = useQuery(healthOptions(reader, id)).data?.waiting_for_batch ?? 0;
  const { data: events = [] } = useQuery({ ...waitingOptions(reader, id), enabled: count > 0 });
  const { sendBatch } = useSubscriptionActions(id);
  const maySend = !useIsReadOnly() && isActive;
  if (count === 0 || events.length === 0) return null;
  return (
    <Panel title="Waiting for the batch" count={count}>
      <DataTable
        caption="Events that wait for the batch, newest first"
        rows={events}
        rowKey={(one) => one.event_id}
        columns={(one) => ({
          Event: one.event,
          Review: <Review delivery={one} />,
          Happened: <Time at={one.created_at} />,
        })}
      />
      <Group justify="space-between" mt="md">
        <Dimmed size="sm">
          {count > events.length && `The newest ${events.length} of them are shown.`}
        </Dimmed>
        {maySend && (
          <ActionButton
            label="Send the batch now"
            fullLabel="Send the batch now"
            onClick={sendBatch}
            done="The batch is being sent."
          />
        )}
      </Group>
    </Panel>
  );
}
