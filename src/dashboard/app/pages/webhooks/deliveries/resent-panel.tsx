import { CloseButton, Group, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useCallback } from "react";
import { Link, useSearchParams } from "wouter";

import { stateColor, stateWord } from "../../../ui/badges.tsx";
import { counted, number } from "../../../ui/format.ts";
import { ErrorNotice } from "../../../ui/states.tsx";
import { ExactTime } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import type { Delivery } from "../data/reads.ts";
import { type Resent, resentQueries, type StateCounts, sumOf } from "../data/resent.ts";
import css from "./deliveries.module.css";

interface ResentProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  readonly resent: Resent;
}

const PARTS: readonly Delivery["state"][] = [
  "delivered",
  "waiting",
  "pending",
  "held",
  "failed",
  "skipped",
];

/** Shows what became of the events of a resend, above the list of these events. */
export function ResentPanel({ id, resent }: ResentProps) {
  const [params, setParams] = useSearchParams();
  const reader = useReader();
  const { counts, error } = useQueries({
    queries: resentQueries(reader, id, resent),
    combine: useCallback(
      (parts: readonly { data: StateCounts | undefined; error: Error | null }[]) => ({
        counts: parts.every(({ data }) => data !== undefined)
          ? sumOf(
              parts.flatMap(({ data }) => data ?? []),
              resent,
            )
          : undefined,
        error: parts.find((part) => part.error !== null)?.error ?? null,
      }),
      [resent],
    ),
  });
  const chosen = params.get("state");
  const linkTo = (state: string | undefined) => {
    const others = [...params].filter(([name]) => name !== "state" && name !== "open");
    const query = new URLSearchParams([
      ...others,
      ...(state === undefined ? [] : [["state", state]]),
    ]);
    return `/webhooks/${id}?${query}`;
  };
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="resent">
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <div>
            <Title order={2} size="h5" id="resent">
              Resent <ExactTime at={resent.at} />
            </Title>
            <Text size="sm" c="dimmed" aria-live="polite">
              {counts === undefined ? "Counting…" : outcomeOf(counts, resent)}
            </Text>
          </div>
          <CloseButton
            aria-label="Show all deliveries"
            title="Show all deliveries"
            onClick={() => setParams({ tab: "deliveries" })}
          />
        </Group>
        {error !== null && <ErrorNotice error={error} />}
        {counts !== undefined && (
          <>
            <Progress.Root size="lg" aria-hidden>
              {PARTS.map((state) => (
                <Progress.Section
                  key={state}
                  value={(100 * counts[state]) / Math.max(1, resent.count)}
                  color={stateColor(state)}
                />
              ))}
            </Progress.Root>
            <nav aria-label="Events of this resend" className={css.resentParts}>
              <Part href={linkTo(undefined)} isChosen={chosen === null} count={resent.count}>
                All
              </Part>
              {PARTS.filter((state) => counts[state] > 0).map((state) => (
                <Part
                  key={state}
                  href={linkTo(state)}
                  isChosen={chosen === state}
                  count={counts[state]}
                >
                  {stateWord(state)}
                </Part>
              ))}
            </nav>
          </>
        )}
      </Stack>
    </Paper>
  );
}

interface PartProps {
  readonly href: string;
  readonly isChosen: boolean;
  readonly count: number;
  readonly children: string;
}

function Part({ href, isChosen, count, children }: PartProps) {
  return (
    <Link href={href} className={css.resentPart} aria-current={isChosen || undefined}>
      {children} <strong className="tabular">{number(count)}</strong>
    </Link>
  );
}

/** Says in a sentence what became of a resend. */
function outcomeOf(counts: StateCounts, { count }: Resent): string {
  const { delivered, pending, waiting, held, failed, skipped } = counts;
  const open = pending + waiting + held;
  const lost = failed + skipped;
  if (open > 0)
    return `${number(delivered)} of ${counted(count, "event")} delivered, ${number(open)} still to come.`;
  if (lost > 0)
    return `${number(delivered)} of ${counted(count, "event")} delivered, ${number(lost)} not.`;
  return count === 1 ? "The event was delivered." : `All ${number(count)} events were delivered.`;
}
