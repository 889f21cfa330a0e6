import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useApi, useSession } from "../../session/session.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { sentence } from "../../ui/format.ts";
import { List } from "../../ui/list.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { VirtualRows } from "../../ui/virtual-rows.tsx";
import { colleaguesOptions, reviewsOptions, useNames } from "./data.ts";
import { FILTERS, FLAG_STATES, reviewQuery, searchOf, VIEWS } from "./review-model.ts";
import { ReviewRow } from "./review-row.tsx";

import "./reviews.css";

/** Estimated height of a review row in px, for a review with two lines of text. */
const ROW_PX = 96;

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const { user } = useSession();
  const filters = useFilters(FILTERS);
  const reviews = useList(reviewsOptions(useApi(), reviewQuery(valuesOf(filters), user.id)));
  return (
    <>
      <PageHeader
        title="Reviews"
        description={
          user.role === "location_user"
            ? "What customers say about your stores. What arrived last comes first."
            : "What customers say about every store of your account. What arrived last comes first."
        }
      />
      <Group justify="space-between" gap="xs" mb="xs">
        <Views filters={filters} />
        <TextFilter
          label="Text"
          isLabelled={false}
          className="review-search"
          placeholder="Search in reviews"
          {...filters.field("q")}
        />
      </Group>
      <ReviewFilters filters={filters} />
      <List
        list={reviews}
        noun={["review", "reviews"]}
        empty={<NoReviews q={filters.get("q")} count={filters.count} onClear={filters.clear} />}
      >
        {() => (
          <VirtualRows className="plain-list" list={reviews} height={ROW_PX}>
            {(one, rowProps) => (
              <ReviewRow key={one.id} review={one} rowProps={rowProps} q={filters.get("q")} />
            )}
          </VirtualRows>
        )}
      </List>
    </>
  );
}

function valuesOf({ get }: Filters) {
  return {
    q: get("q"),
    store: get("store"),
    rate: get("rate"),
    source: get("source"),
    answered: get("answered"),
    flag: get("flag"),
    assigned: get("assigned"),
  };
}

function Views({ filters }: { readonly filters: Filters }) {
  const { q, ...values } = valuesOf(filters);
  const current = searchOf(values);
  return (
    <nav aria-label="Views of the reviews">
      <Group gap="xs">
        {VIEWS.map(({ title, values: own }) => {
          const isCurrent = searchOf(own) === current;
          // Keeps the search text when the user selects another predefined view.
          const search = searchOf({ q, ...own });
          return (
            <Button
              key={title}
              component={Link}
              href={search === "" ? "/reviews" : `/reviews?${search}`}
              size="compact-sm"
              radius="xl"
              variant={isCurrent ? "filled" : "default"}
              aria-current={isCurrent ? "true" : undefined}
            >
              {title}
            </Button>
          );
        })}
      </Group>
    </nav>
  );
}

function ReviewFilters({ filters: { get, field, count, clear } }: { readonly filters: Filters }) {
  const names = useNames();
  const { data: colleagues = [] } = useQuery(colleaguesOptions(useApi()));
  return (
    <FilterBar count={count} inView={get("q") === undefined ? 0 : 1} onClear={clear}>
      <ChoiceFilter
        label="Store"
        any="Every store"
        choices={names.stores.map(([id, name]) => [String(id), name])}
        {...field("store")}
      />
      <ChoiceFilter
        label="Stars"
        any="Any number"
        choices={["5", "4", "3", "2", "1"].map((one) => [one, `${one} of 5`])}
        {...field("rate")}
      />
      <ChoiceFilter label="Source" any="Every site" choices={names.sources} {...field("source")} />
      <ChoiceFilter
        label="Response"
        any="With or without"
        choices={[
          ["false", "Without response"],
          ["true", "With response"],
        ]}
        {...field("answered")}
      />
      <ChoiceFilter
        label="Flag"
        any="Any or none"
        choices={FLAG_STATES.map((one) => [one, sentence(one)])}
        {...field("flag")}
      />
      <ChoiceFilter
        label="Assigned to"
        any="Anybody"
        choices={[["me", "Me"], ...colleagues.map((one) => [String(one.id), one.name] as const)]}
        {...field("assigned")}
      />
    </FilterBar>
  );
}

interface NoReviewsProps {
  readonly q: string | undefined;
  /** Number of active filters; the search text `q` counts as a filter. */
  readonly count: number;
  readonly onClear: () => void;
}

function NoReviews({ q, count, onClear }: NoReviewsProps) {
  if (count > 0)
    return (
      <EmptyState
        icon="search"
        title={q === undefined ? "No review matches" : `No review matches “${q}”`}
        action={
          <Button variant="default" onClick={onClear}>
            Clear filters
          </Button>
        }
      >
        {q !== undefined && count === 1
          ? "Neither a review nor its reviewer or response has this text."
          : "None of your reviews fits all of these filters at once."}
      </EmptyState>
    );
  return (
    <EmptyState
      icon="star"
      title="No reviews yet"
      action={
        <Button component={Link} href="/sites">
          Look at the review sites
        </Button>
      }
    >
      Reviews appear here by themselves as soon as a connected site reports one. If you expect some,
      look whether your stores are connected.
    </EmptyState>
  );
}
