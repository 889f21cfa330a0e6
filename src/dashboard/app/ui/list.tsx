import { Button, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { DataTable, type DataTableProps } from "./data-table.tsx";
import { counted } from "./format.ts";
import css from "./list.module.css";
import type { PagedList } from "./pages.ts";
import { EmptyState, ErrorNotice, Loaded } from "./states.tsx";

/** Returns the rows in memory. */
export const rowsOf = <Row,>({ slots }: PagedList<Row>): readonly Row[] =>
  slots.filter((one) => one !== undefined);

interface ListProps<Row> {
  readonly list: PagedList<Row>;
  /** Content that replaces the list if it has no rows. */
  readonly empty?: ReactNode;
  /**
   * Noun for the rows in singular and plural, such as `["review", "reviews"]`. If present, the number of rows
   * is shown above the list.
   */
  readonly noun?: readonly [one: string, many: string];
  /** Label of the button that loads the next page. */
  readonly more?: string;
  /** Text below the last row of the list. */
  readonly end?: string;
  readonly children: (rows: readonly Row[]) => ReactNode;
}

/** Shows the rows of a list, or its loading, error or empty state, and a button that loads the next page. */
export function List<Row>(props: ListProps<Row>) {
  const { list, empty, noun, more = "Show more", end, children } = props;
  const { hasNextPage, isPlaceholderData } = list.pages;
  const rows = rowsOf(list);
  // True if the loaded pages are empty, but further pages exist. Each request of a search scans only a part of the
  // list, so later pages may contain matches.
  const isPart = rows.length === 0 && hasNextPage;
  const none = isPart ? (
    <EmptyState icon="search" title="Nothing found yet">
      Only the newest entries were searched so far.
    </EmptyState>
  ) : (
    empty
  );
  return (
    <Loaded query={list.pages}>
      {() => (
        <Stack
          gap="md"
          aria-busy={isPlaceholderData}
          className={isPlaceholderData ? css.stale : undefined}
        >
          {noun && <RowCount count={list.slots.length} noun={noun} isPart={hasNextPage} />}
          {rows.length === 0 ? none : children(rows)}
          <ListEnd list={list} more={isPart ? "Search older entries" : more} />
          {end !== undefined && rows.length > 0 && !hasNextPage && (
            <Text size="sm" c="dimmed" ta="center">
              {end}
            </Text>
          )}
        </Stack>
      )}
    </Loaded>
  );
}

/** Shows the error of a page that failed to load, and the button that loads the next page. */
function ListEnd<Row>({ list, more }: Pick<ListProps<Row>, "list" | "more">) {
  const { error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isFetchNextPageError } =
    list.pages;
  const next = () => void fetchNextPage();
  const retry = () => (isFetchNextPageError ? next() : void refetch());
  return (
    <>
      {error !== null && <ErrorNotice error={error} retry={retry} />}
      {hasNextPage && (
        <Group justify="center">
          <Button variant="default" onClick={next} loading={isFetchingNextPage}>
            {more}
          </Button>
        </Group>
      )}
    </>
  );
}

interface RowCountProps {
  readonly count: number;
  readonly noun: readonly [one: string, many: string];
  /** True if the server has more rows than are loaded. */
  readonly isPart: boolean;
}

/** Shows the number of rows. Zero is announced to screen readers only, because the empty state already shows it. */
function RowCount({ count, noun, isPart }: RowCountProps) {
  const isEmpty = count === 0;
  return (
    <Text
      size="sm"
      c="dimmed"
      component="output"
      aria-live="polite"
      className={isEmpty ? "unseen" : undefined}
    >
      {isEmpty ? `No ${noun[1]}` : counted(count, ...noun)}
      {isPart ? " so far" : ""}
    </Text>
  );
}

interface TableListProps<Row> extends Omit<ListProps<Row>, "children"> {
  readonly table: Omit<DataTableProps<Row>, "rows" | "list" | "rowKey">;
}

/** List in a table. */
export function TableList<Row extends { readonly id: number | string }>({
  table,
  ...props
}: TableListProps<Row>) {
  const { list } = props;
  return (
    <List {...props}>
      {() => <DataTable rows={list.slots} list={list} rowKey={({ id }) => id} {...table} />}
    </List>
  );
}
