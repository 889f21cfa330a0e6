import { Button, Group } from "@mantine/core";
import { type MouseEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { StateBadge } from "../../../ui/badges.tsx";
import { DataTable } from "../../../ui/data-table.tsx";
import { milliseconds } from "../../../ui/format.ts";
import { List } from "../../../ui/list.tsx";
import type { PagedList } from "../../../ui/pages.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { clockTime, shortTime, useZone, type Zone, ZoneButton } from "../../../ui/time.tsx";
import type { FollowAttempts } from "../data/data.ts";
import { type DeliveryFilter, deliveryFilterOf } from "../data/filters.ts";
import type { ListedDelivery, Subscription } from "../data/reads.ts";
import { ATTEMPTS, diagnosisOf, OUTCOME_WORDS, phraseOf } from "./attempt-words.ts";
import css from "./delivery-list.module.css";
import { RedeliverButton } from "./delivery-detail.tsx";
import { useDeliveries } from "./use-deliveries.ts";

interface DeliveryListProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Query of the address, as far as it changes the content of the list. */
  readonly search: string;
  /** Id of the event that is shown beside the list. */
  readonly open: string | undefined;
  /** Shows an event beside the list; undefined if there is no room for it. */
  readonly onOpen: ((eventId: string) => void) | undefined;
  readonly above: ReactNode;
}

/**
 * List of the events of a subscription, which follows an event stream. A row can be expanded to show the delivery
 * attempts of the event.
 */
export function DeliveryList(props: DeliveryListProps) {
  const { subscription, search, open, onOpen, above, live, follow } = props;
  const filter = useMemo(() => deliveryFilterOf(new URLSearchParams(search)), [search]);
  const top = useRef<HTMLDivElement>(null);
  const [isPaused, setPaused] = useState(false);
  const isAtTop = () => !isPaused && (top.current?.getBoundingClientRect().top ?? 0) >= 0;
  const list = useDeliveries(subscription.id, filter, { live, follow, isAtTop });
  const lines = useLines(subscription, { search, open, onOpen });
  const jump = () => {
    top.current?.scrollIntoView({ block: "center" });
    setPaused(false);
    list.showNewest();
  };
  const pause = () => {
    setPaused(true);
    list.pause();
  };
  return (
    <div className="shrinks">
      <div ref={top} />
      <div className={css.listHead}>
        <div className="grows">{above}</div>
        <ZoneButton />
        {list.slots.length > 0 && (
          <Button size="xs" variant="default" onClick={isPaused ? jump : pause}>
            {isPaused ? "Resume updates" : "Pause updates"}
          </Button>
        )}
      </div>
      <div aria-live="polite" className={css.news}>
        {list.isOutdated && (
          <Button size="xs" onClick={jump}>
            Show new deliveries
          </Button>
        )}
      </div>
      <List
        list={list}
        empty={<NoDeliveries filter={filter} pages={list.pages} />}
        more="Load older deliveries"
        end="There are no older deliveries. Attempts are kept for 30 days."
      >
        {() => (
          <DataTable
            caption="Events"
            rows={list.slots}
            list={list}
            rowKey={eventIdOf}
            lines={css.lines}
            heights={HEIGHTS}
            {...lines}
          />
        )}
      </List>
    </div>
  );
}

const eventIdOf = ({ event_id: eventId }: ListedDelivery): string => eventId;
const HEIGHTS = [41, 77] as const;

/**
 * Returns the functions that render a row. They change only with the arguments and the time zone, because new
 * functions render all rows again.
 */
function useLines(
  { id, is_active: isActive }: Subscription,
  { search, open, onOpen }: Pick<DeliveryListProps, "search" | "open" | "onOpen">,
) {
  const [zone] = useZone();
  return useMemo(() => {
    const linkTo = ({ event_id: eventId }: ListedDelivery) => ({
      href: `/webhooks/${id}/deliveries/${eventId}?${search}`,
      onClick: (event: MouseEvent) => {
        if (onOpen === undefined) return;
        event.preventDefault();
        onOpen(eventId);
      },
    });
    return {
      columns: (delivery: ListedDelivery) => {
        const at = delivery.attempts.at(-1)?.started_at ?? delivery.created_at;
        const words = stateInWords(delivery, zone);
        return {
          Time: (
            <time className="tabular" dateTime={at}>
              {shortTime(at, zone)}
            </time>
          ),
          Event: (
            <>
              <Link
                className="row-link"
                {...linkTo(delivery)}
                {...(delivery.event_id === open && { "aria-current": true })}
              >
                {delivery.event}
              </Link>
              <code>{delivery.event_id}</code>
            </>
          ),
          Review: <Review delivery={delivery} />,
          Attempts: <Dots delivery={delivery} />,
          State: (
            <>
              <StateBadge state={delivery.state} />
              <span className="finding" title={words}>
                {words}
              </span>
            </>
          ),
        };
      },
      details: {
        label: ({ event_id: eventId }: ListedDelivery) => `Attempts of ${eventId}`,
        render: (delivery: ListedDelivery) => (
          <Attempts delivery={delivery} zone={zone}>
            <RedeliverButton size="xs" id={id} eventId={delivery.event_id} isActive={isActive} />
            <Button size="xs" variant="subtle" component={Link} {...linkTo(delivery)}>
              Request and response
            </Button>
          </Attempts>
        ),
      },
    };
  }, [id, isActive, search, onOpen, open, zone]);
}

interface NoDeliveriesProps extends Pick<PagedList<ListedDelivery>, "pages"> {
  readonly filter: DeliveryFilter;
}

function NoDeliveries({ filter, pages }: NoDeliveriesProps) {
  const [, setParams] = useSearchParams();
  if (Object.keys(filter).length === 0)
    return (
      <EmptyState icon="inbox" title="No deliveries yet">
        Send a test event with the button above, or wait for the first review. Each delivery appears
        here with its attempts.
      </EmptyState>
    );
  const { review_id: reviewId } = filter;
  return (
    <EmptyState icon="inbox" title="No matching deliveries">
      Extend the time range or clear the filters. Attempts are kept for 30 days.
      {reviewId !== undefined && (
        <Button
          variant="subtle"
          onClick={() => setParams({ tab: "deliveries", external_review_id: reviewId })}
        >
          Search for {reviewId} as the id on the review site
        </Button>
      )}
      {pages.hasNextPage && (
        <Button
          variant="default"
          loading={pages.isFetchingNextPage}
          onClick={() => void pages.fetchNextPage()}
        >
          Search older deliveries
        </Button>
      )}
    </EmptyState>
  );
}

const DOTS = 5;

function Review({ delivery }: { readonly delivery: ListedDelivery }) {
  const { review_id: id, external_review_id: own, rate, store_name: store } = delivery;
  if (id === null) return <span className="finding">{store ?? "–"}</span>;
  return (
    <>
      <span>
        {rate !== null && <span title={`${rate} of 5 stars`}>{rate} ★ · </span>}
        {own}
      </span>{" "}
      <span className="finding">
        #{id} · {store}
      </span>
    </>
  );
}

function Dots({ delivery: { attempts } }: { readonly delivery: ListedDelivery }) {
  const shown = attempts.slice(-DOTS);
  return (
    <span className={css.dots}>
      <span className="unseen">{attemptsInWords(attempts)}</span>
      {attempts.length > DOTS && <span aria-hidden>+{attempts.length - DOTS}</span>}
      {shown.length === 0 && <span aria-hidden>–</span>}
      {shown.map(({ id, outcome }) => (
        <span key={id} className={css.dot} data-outcome={outcome} />
      ))}
    </span>
  );
}

interface AttemptsProps {
  readonly delivery: ListedDelivery;
  readonly zone: Zone;
  readonly children: ReactNode;
}

function Attempts({ delivery: { attempts, event }, zone, children }: AttemptsProps) {
  return (
    <>
      <ol className={css.attempts} aria-label={`Attempts of ${event}`}>
        {attempts.map((one) => (
          <li key={one.id}>
            <span className="tabular">
              {one.attempt} of {ATTEMPTS}
              {one.round > 1 && ` · round ${one.round}`}
            </span>
            <span className="outcome" data-outcome={one.outcome}>
              {OUTCOME_WORDS[one.outcome]}
            </span>
            <span className="finding">{diagnosisOf(one).title}</span>
            <span className="tabular finding">
              {shortTime(one.started_at, zone)} · {milliseconds(one.duration_ms)}
            </span>
          </li>
        ))}
        {attempts.length === 0 && <li>No attempt yet.</li>}
      </ol>
      <Group gap="xs" h={44}>
        {children}
      </Group>
    </>
  );
}

type ListedAttempt = ListedDelivery["attempts"][number];

/** Describes all delivery attempts of an event as text for screen readers, which cannot read the coloured dots. */
function attemptsInWords(attempts: readonly ListedAttempt[]): string {
  if (attempts.length === 0) return "No attempt yet";
  return attempts.map((one) => `${one.attempt}: ${attemptInWords(one)}`).join("; ");
}

function attemptInWords(one: ListedAttempt): string {
  const took = milliseconds(one.duration_ms);
  if (one.outcome === "interrupted") return `${OUTCOME_WORDS.interrupted}, ${took}`;
  return `${OUTCOME_WORDS[one.outcome]}, ${phraseOf(one)}, ${took}`;
}

/** Explains the delivery state of an event: the reason for the state and the next step. */
function stateInWords(delivery: ListedDelivery, zone: Zone): string {
  const { state, waiting_behind: behind } = delivery;
  const last = delivery.attempts.at(-1);
  const waits = behind === null || behind === 0 ? "" : ` · ${behindInWords(behind)} behind`;
  if (state === "pending") return "";
  if (state === "held") return `until it is enabled${waits}`;
  if (state === "skipped") return "removed from the queue";
  if (last === undefined) return "";
  const found = diagnosisOf(last).title;
  if (state !== "waiting" || last.next_attempt_at === null) return `${found}${waits}`;
  return `${found} · again ${clockTime(last.next_attempt_at, zone)}${waits}`;
}

const MAX_COUNTED = 10_000;

function behindInWords(count: number): string {
  return count >= MAX_COUNTED - 1 ? "10,000 or more" : String(count);
}
