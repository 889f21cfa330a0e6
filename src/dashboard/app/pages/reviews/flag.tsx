import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { Form, useForm } from "../../ui/form.tsx";
import { sentence } from "../../ui/format.ts";
import { notify } from "../../ui/notify.ts";
import { StateBadge } from "../../ui/badges.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { useReviewActions, type Review } from "./data.ts";
import { FLAG_MEANING, transitionsOf } from "./review-model.ts";
import { Dimmed } from "../../ui/layout.tsx";
import type { ReviewAtSiteProps } from "./response.tsx";
import css from "./review.module.css";

const MAX_CHARS = 1_000;

/** Shows the state of a review's flag, and buttons for the state changes that are possible from this state. */
export function Flag({ review, source }: ReviewAtSiteProps) {
  const { flag, removed_at: removedAt } = review;
  const isOpen = transitionsOf(flag?.status).length > 0;
  return (
    <Stack gap="md">
      {flag !== null && <FlagState flag={flag} />}
      {isOpen && <FlagMoves review={review} />}
      {!isOpen && removedAt === null && <FlagForm review={review} source={source} />}
      {flag === null && removedAt !== null && (
        <Dimmed size="sm">It was not flagged before it was removed.</Dimmed>
      )}
    </Stack>
  );
}

function FlagState({ flag: { status, reason } }: { readonly flag: NonNullable<Review["flag"]> }) {
  return (
    <div>
      <StateBadge state={status} />
      <Text size="sm" mt={6}>
        {FLAG_MEANING[status]}
      </Text>
      {reason !== null && (
        <Text size="sm" c="dimmed" mt={4} className={css.asWritten}>
          Reason: {reason}
        </Text>
      )}
    </div>
  );
}

function FlagMoves({ review }: { readonly review: Review }) {
  const { moveFlag } = useReviewActions(review.id);
  const { mutate, error, isPending, variables } = useMutation({
    mutationFn: moveFlag,
    onSuccess: ({ flag }) => notify.done(`The flag is set to “${sentence(flag?.status ?? "")}”.`),
  });
  return (
    <Stack gap="xs">
      <Group gap="xs" component="fieldset">
        <Text size="sm" fw={500} component="legend" mb={6}>
          Change the flag
        </Text>
        {transitionsOf(review.flag?.status).map(({ to, action }) => (
          <Button
            key={to}
            variant="default"
            size="xs"
            onClick={() => mutate(to)}
            loading={isPending && variables === to}
            disabled={isPending}
          >
            {action}
          </Button>
        ))}
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      <Dimmed>The account owner is told of each change.</Dimmed>
    </Stack>
  );
}

function FlagForm({ review, source }: ReviewAtSiteProps) {
  const { flag } = useReviewActions(review.id);
  const form = useForm({
    name: `review:${review.id}:flag`,
    initial: { reason: "" },
    send: ({ reason }) => flag(reason),
    done: "The review is flagged.",
  });
  return (
    <Form
      form={form}
      gap="xs"
      action="Flag review"
      variant="default"
      isReady={form.draft.reason.trim() !== ""}
    >
      <Textarea
        label={review.flag === null ? "Why should it be checked?" : "Flag it again, because"}
        description={`Such as: not a customer, wrong business, against the rules of ${source}.`}
        autosize
        minRows={2}
        maxRows={8}
        maxLength={MAX_CHARS}
        {...form.text("reason")}
      />
    </Form>
  );
}
