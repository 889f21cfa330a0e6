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
import {
  clockTime,
  isSameDay,
  shortTime,
  useZone,
  type Zone,
  ZoneSwitch,
} from "../../../ui/time.tsx";
import { type FollowAttempts, useIsReadOnly } from "../data/data.ts";
import { type DeliveryFilter, type Outcome, OUTCOMES } from "../data/filters.ts";
import { type ListedDelivery, type Subscription, type SubscriptionProps } from "../data/reads.ts";
import { listedFilterOf } from "../data/resent.ts";
import { MAX_COUNTED } from "../data/subscription-words.ts";
import { BatchWait } from "../stats/batch-wait.tsx";
import { ATTEMPTS, diagnosisOf, OUTCOME_WORDS, phraseOf } from "./attempt-words.ts";
import css from "./delivery-list.module.css";
import { RedeliverButton } from "./redeliver-button.tsx";
import { Review } from "./review.tsx";
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
  const filter = useMemo(() => listedFilterOf(new URLSearchParams(search)), [search]);
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
        <ZoneSwitch />
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
        empty={<NoDeliveries subscription={subscription} filter={filter} pages={list.pages} />}
        more="Load older deliveries"
        end="There are no older deliveries. Attempts are kept for 30 days."
      >
        {() => (
          <>
            <Legend />
            <DataTable
              caption="Events"
              rows={list.slots}
              list={list}
              rowKey={eventIdOf}
              lines={css.lines}
              heights={open === undefined ? HEIGHTS : SPLIT_HEIGHTS}
              {...lines}
            />
          </>
        )}
      </List>
    </div>
  );
}

/** Order of the list, and the meaning of the dots. */
function Legend() {
  return (
    <p className={css.legend}>
      <span>Newest activity first.</span>
      {OUTCOMES.map((outcome) => (
        <span key={outcome} className={css.dots}>
          <span className={css.dot} data-outcome={outcome} />
          {DOT_WORDS[outcome]}
        </span>
      ))}
    </p>
  );
}

const DOT_WORDS: Readonly<Record<Outcome, string>> = {
  delivered: "delivered",
  retry: "retried",
  failed: "failed",
  interrupted: "interrupted",
};

const eventIdOf = ({ event_id: eventId }: ListedDelivery): string => eventId;
const HEIGHTS = [41, 77] as const;
/** Heights of the rows beside an open delivery, where each row has two lines. */
const SPLIT_HEIGHTS = [57, 77] as const;

/**
 * Returns the functions that render a row. They change only with the arguments and the time zone, because new
 * functions render all rows again.
 */
function useLines(
  { id }: Subscription,
  { search, open, onOpen }: Pick<DeliveryListProps, "search" | "open" | "onOpen">,
) {
  const [zone] = useZone();
  return useMemo(() => {
    const linkTo = ({ event_id: eventId }: ListedDelivery) => ({
      href: `/webhooks/${id}/deliveries/${eventId}?${search}`,
      onClick: (event: MouseEvent) => {
        // A modified click opens the page of the event in a new tab.
        if (onOpen === undefined || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        onOpen(eventId);
      },
    });
    return {
      columns: (delivery: ListedDelivery) => {
        const { created_at: at } = delivery;
        const later = laterIn(delivery, zone);
        return {
          Time: (
            <>
              <time className="tabular" dateTime={at}>
                {shortTime(at, zone)}
              </time>
              {later !== undefined && (
                <span className={`finding tabular ${css.later}`} title={later}>
                  {later}
                </span>
              )}
            </>
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
          State: <State delivery={delivery} zone={zone} />,
        };
      },
      details: {
        label: ({ event_id: eventId }: ListedDelivery) => `Attempts of ${eventId}`,
        render: (delivery: ListedDelivery) => (
          <Attempts delivery={delivery} zone={zone}>
            <RedeliverButton size="xs" id={id} delivery={delivery} />
            <Button size="xs" variant="subtle" component={Link} {...linkTo(delivery)}>
              Request and response
            </Button>
          </Attempts>
        ),
      },
    };
  }, [id, search, onOpen, open, zone]);
}

/** Time in ms after an event from which the place of its row in the list would surprise. */
const LATER_MS = 30_000;

/** Returns the time by which the list sorts an event, if it is later than the event itself. */
function laterIn({ created_at: created, listed_at: listed, attempts }: ListedDelivery, zone: Zone) {
  if (Date.parse(listed) - Date.parse(created) < LATER_MS) return undefined;
  const what = attempts.some((one) => one.started_at === listed) ? "attempt" : "queued";
  const isOneDay = isSameDay(created, listed, zone);
  return `${what} ${isOneDay ? clockTime(listed, zone) : shortTime(listed, zone)}`;
}

interface NoDeliveriesProps extends Pick<PagedList<ListedDelivery>, "pages">, SubscriptionProps {
  readonly filter: DeliveryFilter;
}

function NoDeliveries({ subscription, filter, pages }: NoDeliveriesProps) {
  const [, setParams] = useSearchParams();
  const isReadOnly = useIsReadOnly();
  const { delivery_kind: kind, is_active: isActive } = subscription;
  if (Object.keys(filter).length === 0)
    return (
      <EmptyState icon="inbox" title="No deliveries yet">
        {kind === "batch" ? (
          <>
            {/* The banner of a disabled subscription says how many events wait. */}
            {isActive && <BatchWait subscription={subscription} />} Events appear here with their
            attempts once their batch is sent.
          </>
        ) : (
          "Each delivery appears here with its attempts, from the first event on."
        )}
        {!isReadOnly && isActive && " A test event shows at once whether your endpoint works."}
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
          Search for {reviewId} as the ID on the review site
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

/** Shows the state of an event, its reason, and the time of the retry, which is never cut off. */
function State({ delivery, zone }: Pick<AttemptsProps, "delivery" | "zone">) {
  const { state, attempts } = delivery;
  const last = attempts.at(-1);
  const reason = reasonOf(delivery);
  const retryAt = state === "waiting" ? (last?.next_attempt_at ?? null) : null;
  return (
    <>
      <StateBadge state={state} />
      <span className="finding" title={reason}>
        {reason}
      </span>
      {retryAt !== null && (
        <span className={`finding tabular ${css.retry}`}>retry {clockTime(retryAt, zone)}</span>
      )}
    </>
  );
}

/** Explains the state of an event in a few words: the last response, and how many events wait behind it. */
function reasonOf({ state, attempts, waiting_behind: behind }: ListedDelivery): string {
  const waits = behind === null || behind === 0 ? "" : `${behindInWords(behind)} behind`;
  const last = attempts.at(-1);
  if (state === "held") return ["until it is enabled", waits].filter(Boolean).join(" · ");
  if (state === "skipped") return "removed from the queue";
  if (state === "pending" || last === undefined) return "";
  return [diagnosisOf(last).title, waits].filter(Boolean).join(" · ");
}

function behindInWords(count: number): string {
  return count >= MAX_COUNTED - 1 ? "10,000 or more" : String(count);
}
