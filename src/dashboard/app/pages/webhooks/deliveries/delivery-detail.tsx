import { ActionIcon, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useSearchParams } from "wouter";

import css from "./deliveries.module.css";
import { StateBadge } from "../../../ui/badges.tsx";
import { CopyableId } from "../../../ui/copy.tsx";
import { hasDialog } from "../../../ui/dialog.tsx";
import { Icon, type IconName } from "../../../ui/icon.tsx";
import { Facts, TextLink, useFocusFallback } from "../../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../../ui/states.tsx";
import { Countdown, ExactTime } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import {
  type Delivery,
  deliveryOptions,
  healthOptions,
  isTest,
  type ListedDelivery,
  listedDeliveryOptions,
  retryingOptions,
  subscriptionOptions,
} from "../data/reads.ts";
import { AttemptCard } from "./attempt-card.tsx";
import { stateWords } from "./attempt-words.ts";
import { RedeliverButton } from "./redeliver-button.tsx";
import { useNeighbours } from "./use-deliveries.ts";

interface PaneProps extends NeighbourProps {
  readonly onShow: (eventId: string | undefined) => void;
}

const selectedRow = () => document.querySelector<HTMLElement>(".row-link[aria-current]");

/** Shows a delivery beside the list that it was selected in. */
export function DeliveryPane({ id, eventId, onShow }: PaneProps) {
  const delivery = useQuery(deliveryOptions(useReader(), id, eventId));
  const heading = useRef<HTMLHeadingElement>(null);
  const close = () => {
    selectedRow()?.focus({ preventScroll: true });
    onShow(undefined);
  };
  useHotkeys([["Escape", () => !hasDialog() && close()]]);
  useEffect(() => {
    selectedRow()?.scrollIntoView({ block: "nearest" });
    // Screen readers continue in the pane. Closing it leads back to the row.
    heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <section className={css.pane} aria-label="Delivery">
      <Group justify="space-between" gap="xs" mb="sm">
        <Title order={2} size="h4" ref={heading} tabIndex={-1}>
          {delivery.data?.event ?? "Delivery"}
        </Title>
        <Group gap={4}>
          {delivery.data && <RedeliverButton size="xs" id={id} delivery={delivery.data} />}
          <NeighbourButtons id={id} eventId={eventId} onShow={onShow} />
          <IconAction name="x" label="Close" onClick={close} />
        </Group>
      </Group>
      <Loaded query={delivery}>{(one) => <DeliveryDetail id={id} delivery={one} />}</Loaded>
    </section>
  );
}

interface NeighbourProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  readonly eventId: string;
}

interface NeighbourButtonsProps extends NeighbourProps {
  readonly onShow: (eventId: string) => void;
}

/** Buttons, and the keys J and K, that lead to the next and the previous event of the list. */
export function NeighbourButtons({ id, eventId, onShow }: NeighbourButtonsProps) {
  const { previous, next } = useNeighbours(id, eventId);
  useHotkeys([
    ["j", () => next !== undefined && !hasDialog() && onShow(next)],
    ["k", () => previous !== undefined && !hasDialog() && onShow(previous)],
  ]);
  if (previous === undefined && next === undefined) return null;
  return (
    <>
      <IconAction
        name="arrowUp"
        label="Previous delivery (K)"
        isDisabled={previous === undefined}
        onClick={() => previous !== undefined && onShow(previous)}
      />
      <IconAction
        name="arrowDown"
        label="Next delivery (J)"
        isDisabled={next === undefined}
        onClick={() => next !== undefined && onShow(next)}
      />
    </>
  );
}

interface IconActionProps {
  readonly name: IconName;
  readonly label: string;
  readonly isDisabled?: boolean;
  readonly onClick: () => void;
}

function IconAction({ name, label, isDisabled = false, onClick }: IconActionProps) {
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={label}
      title={label}
      disabled={isDisabled}
      onClick={onClick}
    >
      <Icon name={name} size={16} />
    </ActionIcon>
  );
}

interface DetailProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  readonly delivery: Delivery;
}

/** Shows the state of an event and all its attempts with requests and responses. */
export function DeliveryDetail({ id, delivery }: DetailProps) {
  const subscription = useQuery(subscriptionOptions(useReader(), id)).data;
  const about = useQuery(listedDeliveryOptions(useReader(), id, delivery.event_id)).data;
  const words = stateWords(delivery.state, {
    isTest: about ? isTest(about) : false,
    isDeciding: subscription?.pending_test_event_id === delivery.event_id,
    isByReview: subscription?.ordering === "review",
  });
  return (
    <Stack gap="md">
      <Summary
        {...{ id, delivery, about, words }}
        isInOneQueue={subscription?.ordering === "subscription"}
        hasNumbers={subscription?.sequence_headers ?? false}
      />
      <Attempts delivery={delivery} url={subscription?.webhook_url} />
    </Stack>
  );
}

interface AttemptsProps extends Pick<DetailProps, "delivery"> {
  readonly url: string | undefined;
}

function Attempts({ delivery: { attempts }, url }: AttemptsProps) {
  const newestFirst = attempts.toReversed();
  return (
    <section aria-labelledby="attempts">
      <Title order={2} size="h4" mb="sm" id="attempts">
        Attempts
      </Title>
      {attempts.some(({ round }) => round > 1) && (
        <Text size="sm" c="dimmed" mb="sm">
          A round is up to four attempts. Each resend starts another round.
        </Text>
      )}
      {attempts.length === 0 ? (
        <EmptyState icon="clock" title="No attempt yet">
          Each attempt appears here with its request and response.
        </EmptyState>
      ) : (
        <ol className={css.timeline} reversed>
          {newestFirst.map((attempt, i) => (
            <AttemptCard key={attempt.id} attempt={attempt} url={url} isOpenAtFirst={i === 0} />
          ))}
        </ol>
      )}
    </section>
  );
}

interface SummaryProps extends DetailProps {
  /** Explanation of the delivery's state. */
  readonly words: string;
  readonly about: ListedDelivery | null | undefined;
  /** True if the receiver of the events sees their numbers. */
  readonly hasNumbers: boolean;
  /** True if the event waits for all events before it, and not only for those of its review. */
  readonly isInOneQueue: boolean;
}

function Summary({ id, delivery, about, words, hasNumbers, isInOneQueue }: SummaryProps) {
  const { event_id: eventId, state, attempts, settled_at: settledAt } = delivery;
  const next = settledAt === null ? attempts.at(-1)?.next_attempt_at : null;
  const isRetrying = useQuery(retryingOptions(id, eventId)).data ?? false;
  // The button of a resend goes away until the event is settled again.
  const container = useFocusFallback(state);
  return (
    <Paper
      withBorder
      p="md"
      component="section"
      aria-label="State of the event"
      ref={container}
      tabIndex={-1}
    >
      <Stack gap="sm">
        <Group gap="sm" aria-live="polite">
          <StateBadge state={state} />
          <Text size="sm">
            {words}
            {state === "pending" && isInOneQueue && about && !isTest(about) && (
              <Blocker id={id} eventId={eventId} />
            )}
            {state === "waiting" && isRetrying && " The retry is on its way…"}
            {state === "waiting" && !isRetrying && next !== null && next !== undefined && (
              <>
                {" "}
                Next attempt <Countdown to={next} />.
              </>
            )}
          </Text>
        </Group>
        <Facts
          facts={Object.entries({
            "Event ID": <CopyableId id={eventId} label="Copy the event ID" />,
            Recorded: <ExactTime at={delivery.created_at} />,
            Settled: settledAt === null ? "Not yet" : <ExactTime at={settledAt} />,
            ...(hasNumbers &&
              about &&
              !isTest(about) && { "Sequence number": <Sequence id={id} of={delivery.sequence} /> }),
            ...(about && about.review_id !== null && { Review: <Review id={id} about={about} /> }),
            ...(about &&
              about.external_review_id !== null && {
                "ID on the review site": (
                  <CopyableId
                    id={about.external_review_id}
                    label="Copy the ID on the review site"
                  />
                ),
              }),
          })}
        />
      </Stack>
    </Paper>
  );
}

/** Links the event whose retry an event of the same queue waits for. */
function Blocker({ id, eventId }: NeighbourProps) {
  const { data: health } = useQuery(healthOptions(useReader(), id));
  const blocker = health?.blocked_by ?? null;
  if (blocker === null || blocker === eventId) return null;
  return (
    <>
      {" "}
      One of them failed and blocks this event:{" "}
      <TextLink href={`/webhooks/${id}/deliveries/${blocker}`}>see the blocking event</TextLink>.
    </>
  );
}

/** Shows the number of the event at this subscription, with a link to the events around it. */
function Sequence({ id, of: number }: { readonly id: string; readonly of: number }) {
  const sequence = `${Math.max(1, number - AROUND)}-${number + AROUND}`;
  return (
    <>
      <code>{number}</code> ·{" "}
      <TextLink href={`/webhooks/${id}?${new URLSearchParams({ tab: "deliveries", sequence })}`}>
        Events around it
      </TextLink>
    </>
  );
}

/** Number of events before and after an event to which its page links. */
const AROUND = 10;

interface ReviewProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  readonly about: ListedDelivery;
}

/** Names the review that the event is about, with a link to all deliveries for this review. */
function Review({ id, about }: ReviewProps) {
  const search = new URLSearchParams({ tab: "deliveries", review_id: String(about.review_id) });
  return (
    <>
      {about.rate !== null && `${about.rate} ★ · `}#{about.review_id} · {about.store_name} ·{" "}
      <TextLink href={`/webhooks/${id}?${search}`}>All events of this review</TextLink>
    </>
  );
}

/** Returns the query of the list that a delivery was opened from, so that a link leads back to the same list. */
export function useListSearch(): string {
  const [params] = useSearchParams();
  return new URLSearchParams({ ...Object.fromEntries(params), tab: "deliveries" }).toString();
}
