import { Button, Text, useMantineTheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";

import { ErrorNotice } from "../../../ui/states.tsx";
import type { AttemptRow } from "../data/attempt-rows.ts";
import { AttemptLine, COLUMNS } from "./attempt-line.tsx";

const LINE_PX = 44;
const CARD_PX = 104;
const OVERSCAN = 12;
/** The next page is asked for so many rows before the end. */
const AHEAD = 60;

interface TableProps {
  readonly subscriptionId: string;
  readonly rows: readonly AttemptRow[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
}

/** Has only those of any number of rows in the document that are in view; the page itself scrolls. */
export function AttemptTable(props: TableProps) {
  const { subscriptionId, rows, hasMore, isLoading, error, onMore } = props;
  const theme = useMantineTheme();
  const isNarrow = useMediaQuery(`(max-width: ${theme.breakpoints.sm})`, undefined, {
    getInitialValueInEffect: false,
  });
  const { body, offset } = useOffset();
  const height = isNarrow ? CARD_PX : LINE_PX;
  // No memorised component gets anything of the virtualizer.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: offset,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, height]);
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const isNearEnd = hasMore && !isLoading && error === null && last >= rows.length - AHEAD;
  useEffect(() => {
    if (isNearEnd) onMore();
  }, [isNearEnd, onMore]);
  return (
    <>
      <table
        aria-label="Attempts"
        aria-rowcount={hasMore ? -1 : rows.length + 1}
        className="attempts"
      >
        <thead>
          <tr aria-rowindex={1} className="attempt-head">
            {COLUMNS.map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} className="attempt-body" style={{ height: virtualizer.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows[index];
            return (
              row && (
                <tr
                  key={key}
                  aria-rowindex={index + 2}
                  className="attempt-line"
                  style={{ height, transform: `translateY(${start - offset}px)` }}
                >
                  <AttemptLine subscriptionId={subscriptionId} row={row} />
                </tr>
              )
            );
          })}
        </tbody>
      </table>
      <ListEnd {...{ hasMore, isLoading, error, onMore }} />
    </>
  );
}

function ListEnd({
  hasMore,
  isLoading,
  error,
  onMore,
}: Pick<TableProps, "hasMore" | "isLoading" | "error" | "onMore">) {
  if (error !== null) return <ErrorNotice error={error} retry={onMore} />;
  return (
    <Text size="sm" c="dimmed" ta="center" py="md" component="div" mih={52}>
      {isLoading && "Loading older attempts …"}
      {!isLoading && hasMore && (
        <Button variant="subtle" size="compact-sm" onClick={onMore}>
          Load older attempts
        </Button>
      )}
      {!hasMore && "These are all. Attempts are kept for 30 days."}
    </Text>
  );
}

/** Measures how far down the page the rows begin; what is above may grow and shrink. */
function useOffset() {
  const body = useRef<HTMLTableSectionElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { top } = body.current?.getBoundingClientRect() ?? { top: 0 };
      setOffset(Math.round(top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return { body, offset };
}
