import { useCallback, useState } from "react";

import { usePlainLinks } from "../../../ui/plain-links.ts";
import { VirtualTable } from "../../../ui/virtual-table.tsx";
import type { Message, Subscription } from "../data/reads.ts";
import { COLUMNS, MessageLine } from "./message-line.tsx";

const LINE_PX = 44;
const CARD_PX = 148;
/** With what the style sheet gives an attempt, and what stands around the list of them. */
const ATTEMPT_PX = 26;
const ATTEMPT_CARD_PX = 46;
const AROUND_PX = 60;

interface TableProps {
  readonly subscription: Pick<Subscription, "id" | "is_active">;
  readonly rows: readonly (Message | undefined)[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
  readonly onView: (first: number, last: number) => void;
}

/** Shows one row an event, each of which opens to its attempts. */
export function MessageTable({ subscription: { id, is_active: isActive }, ...list }: TableProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback(
    (eventId: string) => setOpen((before) => before.symmetricDifference(new Set([eventId]))),
    [],
  );
  const heightOf = useCallback(
    (row: Message | undefined, isNarrow: boolean) => {
      const closed = isNarrow ? CARD_PX : LINE_PX;
      if (row === undefined || !open.has(row.event_id)) return closed;
      const lines = Math.max(1, row.attempts.length);
      return closed + lines * (isNarrow ? ATTEMPT_CARD_PX : ATTEMPT_PX) + AROUND_PX;
    },
    [open],
  );
  const { base, follow } = usePlainLinks();
  const root = `${base}/webhooks/${id}/deliveries`;
  return (
    <VirtualTable
      label="Events"
      kind="message"
      noun="events"
      columns={COLUMNS}
      keyOf={eventIdOf}
      heightOf={heightOf}
      renderLine={(row) => (
        <MessageLine
          root={root}
          follow={follow}
          subscriptionId={id}
          isActive={isActive}
          message={row}
          isOpen={open.has(row.event_id)}
          onToggle={toggle}
        />
      )}
      {...list}
    />
  );
}

const eventIdOf = ({ event_id: eventId }: Message): string => eventId;
