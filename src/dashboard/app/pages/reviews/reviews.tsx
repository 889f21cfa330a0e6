import { Anchor, Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useApi, useSession } from "../../session/session.tsx";
import { Highlighted, Stars, stateColor, Tag } from "../../ui/badges.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { CellText, PageHeader } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { excerpt, has } from "../../ui/text-query.ts";
import { Time } from "../../ui/time.tsx";
import { colleaguesOptions, type Review, reviewsOptions, useNames } from "./data.ts";
import { FILTERS, FLAG_STATES, reviewQuery, searchOf, VIEWS } from "./review-model.ts";
import css from "./reviews.module.css";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const { user } = useSession();
  const filters = useFilters(FILTERS);
  const names = useNames();
  const reviews = useList(reviewsOptions(useApi(), reviewQuery(valuesOf(filters), user.id)));
  return (
    <>
      <PageHeader title="Reviews" />
      <Group justify="space-between" gap="xs" mb="xs">
        <Views filters={filters} />
        <TextFilter
          label="Text"
          isLabelled={false}
          className={css.search}
          placeholder="Search in reviews"
          {...filters.field("q")}
        />
      </Group>
      <ReviewFilters filters={filters} />
      <TableList
        list={reviews}
        noun={["review", "reviews"]}
        empty={<NoReviews q={filters.get("q")} count={filters.count} onClear={filters.clear} />}
        table={{
          caption: "Reviews, newest first",
          lines: css.lines,
          heights: [72, 130],
          columns: (review) => reviewColumns(review, names, filters.get("q")),
        }}
      />
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
    <nav aria-label="Lists of reviews">
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
    <FilterBar count={count} inView={get("q") === undefined ? 0 : 1} onClear={clear} isFolded>
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
          ? "No review, reviewer or response contains this text."
          : "No review matches all filters."}
      </EmptyState>
    );
  return (
    <EmptyState
      icon="star"
      title="No reviews yet"
      action={
        <Button component={Link} href="/sites">
          Open review sites
        </Button>
      }
    >
      New reviews appear here automatically when a connected site reports them. If you expect
      reviews, check that your stores are connected.
    </EmptyState>
  );
}

interface ReviewProps {
  readonly review: Review;
}

/** Returns the columns of a review. A click anywhere in the row opens the review. */
function reviewColumns(review: Review, names: ReturnType<typeof useNames>, q: string | undefined) {
  const { id, rate, reviewer } = review;
  const name = reviewer ?? "Anonymous";
  return {
    Review: (
      <>
        <Group gap="xs" wrap="nowrap">
          <Stars rate={rate} />
          <Anchor component={Link} href={`/reviews/${id}`} className="row-link">
            <Highlighted text={name} q={q} />
          </Anchor>
        </Group>
        <Words review={review} q={q} />
      </>
    ),
    Source: (
      <CellText title={names.source(review.source_platform)}>
        {names.store(review.store_id)}
      </CellText>
    ),
    State: (
      <Group gap={6}>
        <Marks review={review} />
        {isUnanswered(review) && (
          <Button
            component={Link}
            href={`/reviews/${id}?respond`}
            className="on-top"
            size="compact-sm"
            variant="default"
            leftSection={<Icon name="message" size={14} />}
            aria-label={`Respond to ${name}`}
          >
            Respond
          </Button>
        )}
      </Group>
    ),
    Received: (
      <span className="on-top">
        <Time at={review.reviewed_at} />
      </span>
    ),
  };
}

/** Returns whether a user can still write the first response to the review. */
const isUnanswered = ({ response, removed_at: removedAt }: Review) =>
  response === null && removedAt === null;

interface WordsProps extends ReviewProps {
  /** Search text to highlight in the review; undefined without a search. */
  readonly q: string | undefined;
}

/**
 * Shows the text of the review. If the search text occurs only in the response, an excerpt of the response is
 * shown, too.
 */
function Words({ review: { content, response }, q }: WordsProps) {
  const isInResponse =
    q !== undefined && !has(content, q) && response !== null && has(response.body, q);
  return (
    <div className={css.words}>
      {content === "" ? (
        <Text size="sm" c="dimmed" fs="italic">
          Rating without text.
        </Text>
      ) : (
        <Text size="sm" lineClamp={isInResponse ? 1 : 2}>
          <Highlighted text={q === undefined ? content : excerpt(content, q)} q={q} />
        </Text>
      )}
      {isInResponse && (
        <Text size="sm" lineClamp={1}>
          <Text span inherit c="dimmed">
            Response:{" "}
          </Text>
          <Highlighted text={excerpt(response.body, q)} q={q} />
        </Text>
      )}
    </div>
  );
}

/** Shows the response, flag, assignee and removal of a review as tags. */
function Marks({ review }: ReviewProps) {
  const names = useNames();
  const { response, flag, assigned_user_id: assignee } = review;
  return (
    <>
      {/* The list does not know whether the site has published the response; the review's page tells. */}
      {response !== null && <Tag isQuiet>Responded</Tag>}
      {flag !== null && (
        <Tag isQuiet color={stateColor(flag.status)}>
          Flag: {sentence(flag.status).toLowerCase()}
        </Tag>
      )}
      {assignee !== null && <Tag isQuiet>Assigned to {names.user(assignee)}</Tag>}
      {review.removed_at !== null && (
        <Tag isQuiet color="red">
          Removed by the review site
        </Tag>
      )}
    </>
  );
}
