import { Anchor, Badge, Button, Group, Text } from "@mantine/core";
import { Link } from "wouter";

import { useApi, useSession } from "../../session.tsx";
import { CursorPages, useCursorPages } from "../../ui/cursor-pages.tsx";
import { ChoiceFilter, FilterBar, useFilters } from "../../ui/filters.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { sentence } from "../../ui/words.ts";
import { useColleagues, useNames, type Review } from "./data.ts";
import { FILTERS, FLAG_STATES, reviewQuery, searchOf, VIEWS } from "./review-filters.ts";
import { Stars } from "./stars.tsx";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const api = useApi();
  const { user } = useSession();
  const filters = useFilters(FILTERS);
  const { get } = filters;
  const query = reviewQuery(
    {
      store: get("store"),
      rate: get("rate"),
      source: get("source"),
      answered: get("answered"),
      flag: get("flag"),
      assigned: get("assigned"),
    },
    user.id,
  );
  const reviews = useCursorPages(["reviews", query], (cursor) =>
    api.call("GET", "/account/reviews", { query: { ...query, ...(cursor && { cursor }) } }),
  );
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
      <Views filters={filters} />
      <ReviewFilters filters={filters} />
      <CursorPages
        query={reviews}
        noun={["review", "reviews"]}
        empty={<NoReviews isFiltered={filters.count > 0} onClear={filters.clear} />}
      >
        {(rows) => (
          <ul className="plain-list">
            {rows.map((one) => (
              <ReviewRow key={one.id} review={one} />
            ))}
          </ul>
        )}
      </CursorPages>
    </>
  );
}

function Views({ filters }: { readonly filters: Filters }) {
  const current = searchOf(
    Object.fromEntries(FILTERS.map((name) => [name, filters.get(name)] as const)),
  );
  return (
    <nav aria-label="Views of the reviews">
      <Group gap="xs" mb="xs">
        {VIEWS.map(({ title, values }) => {
          const search = searchOf(values);
          const isCurrent = search === current;
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

function ReviewFilters({ filters: { get, set, count, clear } }: { readonly filters: Filters }) {
  const names = useNames();
  const { data: colleagues = [] } = useColleagues();
  return (
    <FilterBar count={count} onClear={clear}>
      <ChoiceFilter
        label="Store"
        any="Every store"
        choices={names.stores.map(([id, name]) => [String(id), name])}
        value={get("store")}
        onChange={(store) => set({ store })}
      />
      <ChoiceFilter
        label="Stars"
        any="Any number"
        choices={["5", "4", "3", "2", "1"].map((one) => [one, `${one} of 5`])}
        value={get("rate")}
        onChange={(rate) => set({ rate })}
      />
      <ChoiceFilter
        label="Source"
        any="Every site"
        choices={names.sources}
        value={get("source")}
        onChange={(source) => set({ source })}
      />
      <ChoiceFilter
        label="Response"
        any="With or without"
        choices={[
          ["false", "Without response"],
          ["true", "With response"],
        ]}
        value={get("answered")}
        onChange={(answered) => set({ answered })}
      />
      <ChoiceFilter
        label="Flag"
        any="Any or none"
        choices={FLAG_STATES.map((one) => [one, sentence(one)])}
        value={get("flag")}
        onChange={(flag) => set({ flag })}
      />
      <ChoiceFilter
        label="Assigned to"
        any="Anybody"
        choices={[["me", "Me"], ...colleagues.map((one) => [String(one.id), one.name] as const)]}
        value={get("assigned")}
        onChange={(assigned) => set({ assigned })}
      />
    </FilterBar>
  );
}

function ReviewRow({ review }: { readonly review: Review }) {
  const names = useNames();
  const { id, rate, reviewer, content, response, flag, assigned_user_id: assignee } = review;
  return (
    <li className="review-row">
      <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
        <Group gap="xs" className="shrinks">
          <Stars rate={rate} />
          <Anchor component={Link} href={`/reviews/${id}`} className="covers" fw={600} c="inherit">
            {reviewer ?? "Anonymous"}
          </Anchor>
          <Text size="sm" c="dimmed" span>
            {names.source(review.source_platform)} · {names.store(review.store_id)}
          </Text>
        </Group>
        <Text size="sm" c="dimmed" span className="on-top one-line">
          <Time at={review.reviewed_at} />
        </Text>
      </Group>
      <Text lineClamp={2} mt={4} {...(content === "" && { c: "dimmed", fs: "italic" })}>
        {content === "" ? "Stars without a text." : content}
      </Text>
      <Group gap={6} mt={8}>
        {response === null ? <Mark text="No response" /> : <Mark text="Answered" color="teal" />}
        {flag !== null && (
          <Mark
            text={`Flag: ${sentence(flag.status).toLowerCase()}`}
            color={flag.status === "open" || flag.status === "under_review" ? "yellow" : "gray"}
          />
        )}
        {assignee !== null && <Mark text={`Assigned to ${names.user(assignee)}`} />}
        {review.removed_at !== null && <Mark text="Removed by its site" color="red" />}
      </Group>
    </li>
  );
}

function Mark({ text, color = "gray" }: { readonly text: string; readonly color?: string }) {
  return (
    <Badge color={color} variant="light" tt="none" radius="sm" fw={500}>
      {text}
    </Badge>
  );
}

function NoReviews({
  isFiltered,
  onClear,
}: {
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}) {
  if (isFiltered)
    return (
      <EmptyState
        icon="search"
        title="No review matches"
        action={
          <Button variant="default" onClick={onClear}>
            Clear filters
          </Button>
        }
      >
        None of your reviews fits all of these filters at once.
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
