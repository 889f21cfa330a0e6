import { usePlainLinks } from "../../../ui/plain-links.ts";
import { VirtualTable } from "../../../ui/virtual-table.tsx";
import type { AttemptRow } from "../data/attempt-rows.ts";
import { AttemptLine, COLUMNS } from "./attempt-line.tsx";

const LINE_PX = 44;
const CARD_PX = 104;

interface TableProps {
  readonly subscriptionId: string;
  readonly rows: readonly (AttemptRow | undefined)[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
  readonly onView: (first: number, last: number) => void;
}

export function AttemptTable({ subscriptionId, ...list }: TableProps) {
  const { base, follow } = usePlainLinks();
  const root = `${base}/webhooks/${subscriptionId}/deliveries`;
  return (
    <VirtualTable
      label="Attempts"
      kind="attempt"
      noun="attempts"
      columns={COLUMNS}
      keyOf={idOf}
      heightOf={heightOf}
      renderLine={(row) => <AttemptLine root={root} follow={follow} row={row} />}
      {...list}
    />
  );
}

const idOf = ({ id }: AttemptRow): string => id;
const heightOf = (_row: unknown, isNarrow: boolean): number => (isNarrow ? CARD_PX : LINE_PX);
